// deploy/kubernetes fits what it runs: settings that Intray takes, addresses that it has, names that lead somewhere, and what
// Kubernetes calls a restricted pod. `npm run prove -- manifests` compares the files with Kubernetes' own schemas.

import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type Config, ConfigError, loadConfig } from '../../src/config.ts'
import { ROUTES } from '../../src/http/routes.ts'
import { parseDuration } from '../../src/runtime/duration.ts'
import { tempFolder } from '../support/temp.ts'

const FOLDER = fileURLToPath(new URL('../../deploy/kubernetes/', import.meta.url))
/** As `kubectl apply -f deploy/kubernetes` takes them. */
const APPLIED = globSync('*.{yaml,yml,json}', { cwd: FOLDER })

interface Port {
  readonly name: string
  readonly containerPort: number
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface Container {
  readonly ports: readonly Port[]
  readonly startupProbe: Probe
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
  readonly resources: { readonly limits: { readonly memory: string } }
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}
interface PodSpec {
  readonly enableServiceLinks: boolean
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly containers: readonly [Container]
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[]
}

/** Kubernetes reads YAML 1.1, where 0440 is octal. */
function read<T>(name: string): T {
  return parse(readFileSync(join(FOLDER, name), 'utf8'), { version: '1.1' }) as T
}
const deployment = read<{ spec: { replicas: number; template: { metadata: { labels: object }; spec: PodSpec } } }>(
  'deployment.yaml',
)
const { metadata: pod, spec } = deployment.spec.template
const [container] = spec.containers
const { data: environment } = read<{ data: Record<string, string> }>('config.yaml')
const secret = read<{ metadata: { name: string }; stringData: Record<string, string> }>('secret.yaml.example')

/** With the Secret where the pod finds it. */
function settings(): Config {
  const file = join(tempFolder('kubernetes'), 'url')
  writeFileSync(file, `${secret.stringData.url}\n`)
  return loadConfig({ ...environment, INTRAY_DATABASE_URL_FILE: file })
}

test('the settings are those of Intray, and the ports are the same in all files', () => {
  const { host, port, metrics, databaseUrl } = settings()
  assert.equal(host, '0.0.0.0')
  assert.deepEqual(
    container.ports.map(({ name, containerPort }) => [name, containerPort]),
    [
      ['http', port],
      ['metrics', metrics?.port],
    ],
  )
  assert.match(databaseUrl, /^postgres:/)
})

test('the Secret is a file where the setting looks for it, and is not applied with the others', () => {
  const [volume] = spec.volumes.filter((one) => one.secret?.secretName === secret.metadata.name)
  const mount = container.volumeMounts.find(({ name }) => name === volume?.name)
  assert.equal(environment.INTRAY_DATABASE_URL_FILE, `${mount?.mountPath}/${Object.keys(secret.stringData)[0]}`)
  assert.ok(APPLIED.length >= 7)
  for (const name of APPLIED) assert.notEqual(read<{ kind: string }>(name).kind, 'Secret', basename(name))
})

test('what Kubernetes sets for a Service called intray would stop the start, so the pod does without', () => {
  assert.throws(() => loadConfig({ INTRAY_PORT: 'tcp://10.0.0.1:80', INTRAY_SERVICE_HOST: '10.0.0.1' }), ConfigError)
  assert.equal(spec.enableServiceLinks, false)
})

test('probes ask addresses that need no token: /readyz takes a node out, /livez restarts it', () => {
  const open = ROUTES.filter(({ method, scope }) => method === 'GET' && scope === 'public').map(({ path }) => path)
  const { startupProbe, readinessProbe, livenessProbe } = container
  for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe]) {
    assert.ok(open.includes(httpGet.path), httpGet.path)
    assert.equal(httpGet.port, 'http')
  }
  const paths = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.path)
  assert.deepEqual(paths, ['/livez', '/readyz', '/livez'])
})

test('a pod has longer to stop than Intray takes, and more memory than Intray may hold of messages', () => {
  const { stopTimeout, receivingMaxBytes, queueMaxBytes } = settings()
  const readyDelay = parseDuration(environment.INTRAY_READY_DELAY!)!
  assert.ok(readyDelay >= parseDuration('5s')!)
  assert.ok(spec.terminationGracePeriodSeconds * 1000 > readyDelay + stopTimeout)
  const [, gib] = /^(\d+)Gi$/.exec(container.resources.limits.memory)!
  assert.ok(Number(gib) * 2 ** 30 > 2 * (receivingMaxBytes + queueMaxBytes))
})

test('every selector finds the pods, every port has its name, and one node may be missing at a time', () => {
  const { metadata, spec: service } = read<{
    metadata: { labels: object }
    spec: { selector: object; ports: { name: string; targetPort: string }[] }
  }>('service.yaml')
  assert.deepEqual(service.selector, pod.labels)
  const containerPorts = container.ports.map(({ name }) => name)
  for (const { targetPort } of service.ports) assert.ok(containerPorts.includes(targetPort))

  interface Selecting {
    readonly spec: { readonly selector: { readonly matchLabels: object } }
  }
  const budget = read<Selecting & { spec: { maxUnavailable: number } }>('pod-disruption-budget.yaml')
  assert.deepEqual(budget.spec.selector.matchLabels, pod.labels)
  assert.ok(budget.spec.maxUnavailable < deployment.spec.replicas)
  assert.deepEqual(read<Selecting>('deployment.yaml').spec.selector.matchLabels, pod.labels)

  const policy = read<{
    spec: { podSelector: { matchLabels: object }; ingress: { ports: { port: string }[] }[] }
  }>('network-policy.yaml')
  assert.deepEqual(policy.spec.podSelector.matchLabels, pod.labels)
  assert.deepEqual(
    policy.spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port)),
    containerPorts,
  )

  const monitor = read<Selecting & { spec: { endpoints: object[] } }>('service-monitor.yaml')
  assert.deepEqual(monitor.spec.selector.matchLabels, metadata.labels)
  assert.deepEqual(Object.keys(monitor.spec).toSorted(), ['endpoints', 'selector'])
  assert.deepEqual(monitor.spec.endpoints, [{ port: 'metrics', interval: '15s' }])

  const ingress = readFileSync(join(FOLDER, 'ingress.yaml'), 'utf8')
  assert.match(ingress, /service:\n +name: intray\n +port: \{ name: http \}/)
})

/** What the level "restricted" of Kubernetes' Pod Security Standards asks of a pod, and a read-only root. */
function securityProblems(given: Pick<PodSpec, 'securityContext' | 'containers'>): string[] {
  const inPod = given.securityContext
  const inContainer = given.containers[0].securityContext
  const wanted: Record<string, boolean> = {
    runAsNonRoot: inPod.runAsNonRoot === true,
    runAsUser: Number(inPod.runAsUser) > 0,
    seccompProfile: (inPod.seccompProfile as { type?: string } | undefined)?.type === 'RuntimeDefault',
    allowPrivilegeEscalation: inContainer.allowPrivilegeEscalation === false,
    readOnlyRootFilesystem: inContainer.readOnlyRootFilesystem === true,
    capabilities: JSON.stringify(inContainer.capabilities) === '{"drop":["ALL"]}',
  }
  return Object.keys(wanted).filter((key) => !wanted[key])
}

test('the pod is a restricted one; without any of its restrictions it is found not to be', () => {
  assert.deepEqual(securityProblems(spec), [])
  for (const key of ['runAsNonRoot', 'runAsUser', 'seccompProfile']) {
    const { [key]: _, ...securityContext } = spec.securityContext
    assert.deepEqual(securityProblems({ ...spec, securityContext }), [key])
  }
  for (const key of ['allowPrivilegeEscalation', 'readOnlyRootFilesystem', 'capabilities']) {
    const { [key]: _, ...securityContext } = container.securityContext
    assert.deepEqual(securityProblems({ ...spec, containers: [{ ...container, securityContext }] }), [key])
  }
})
