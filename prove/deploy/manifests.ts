// `prove manifests`: deploy/kubernetes against Kubernetes' own schemas, strictly, for the oldest and the newest version that the
// validator from PyPI brings. What is counted are manifests. Control: each of them with a misspelt field must be rejected.

import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { PYTHON } from '../../test/support/python.ts'
import { NO_COUNTS } from '../counts.ts'
import { requirePackages } from '../debian.ts'
import { type Proof, Unable } from '../proof.ts'

const FOLDER = fileURLToPath(new URL('../../deploy/kubernetes/', import.meta.url))
const VALIDATOR = 'kubernetes-validate==1.37.0'
const VERSIONS = ['1.25.0', '1.37.0']
const INSTALL_MS = 300_000

export const manifests: Proof = {
  name: 'manifests',
  about: 'the manifests of Kubernetes against its schemas, each as it is and with a misspelt field',
  needs: 'Python with venv, and PyPI',
  stores: ['postgres'],
  defaultCycles: VERSIONS.length,
  async run({ folder, cycles, progress }) {
    const validator = installValidator(folder, progress)
    const files = globSync(['*.yaml', '*.example'], { cwd: FOLDER }).toSorted()
    const versions = VERSIONS.slice(0, cycles)
    const broken: string[] = []
    const notCovered = new Set<string>()
    let passed = 0
    let rejected = 0
    let misspelt = 0
    for (const version of versions) {
      for (const name of files) {
        const whole = validate(validator, version, join(FOLDER, name))
        // The schemas of extensions are not Kubernetes' own.
        if (whole.said.includes("Couldn't find schema")) {
          notCovered.add(name)
          continue
        }
        if (whole.isValid) passed += 1
        else broken.push(`${name} is not valid for ${version}: ${whole.said}`)
        misspelt += 1
        const control = validate(validator, version, misspell(folder, name))
        if (!control.isValid) rejected += 1
      }
    }
    return {
      counts: { ...NO_COUNTS, sent: passed + broken.length, acknowledged: passed, faults: misspelt },
      notes: [
        `Sent are manifests to the validator: ${files.length - notCovered.size} files for Kubernetes ${versions.join(' and ')}.`,
        `Not covered, since another project defines them: ${[...notCovered].join(', ') || 'none'}.`,
      ],
      broken,
      controls: [
        {
          about: 'the same manifests with a misspelt field',
          failed: misspelt > 0 && rejected === misspelt,
          detail: `${rejected} of ${misspelt} rejected`,
        },
      ],
    }
  },
}

function installValidator(folder: string, progress: (line: string) => void): string {
  requirePackages(
    {
      proof: 'prove manifests',
      packages: ['python3', 'python3-venv'],
      isThere: () => spawnSync(PYTHON, ['-c', 'import ensurepip']).status === 0,
    },
    progress,
  )
  const environment = join(folder, 'python')
  progress(`installing ${VALIDATOR}`)
  try {
    execFileSync(PYTHON, ['-m', 'venv', environment], { stdio: 'pipe', timeout: INSTALL_MS })
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', VALIDATOR]
    execFileSync(join(environment, 'bin/python'), pip, { stdio: 'pipe', timeout: INSTALL_MS })
  } catch (error) {
    throw new Unable(`${VALIDATOR} could not be installed: ${String((error as { stderr?: unknown }).stderr)}`)
  }
  return join(environment, 'bin/kubernetes-validate')
}

function validate(validator: string, version: string, file: string): { isValid: boolean; said: string } {
  const { status, stdout, stderr } = spawnSync(validator, ['--strict', '-k', version, file], { encoding: 'utf8' })
  return { isValid: status === 0, said: `${stdout}${stderr}`.trim() }
}

/** The part of each manifest that says what it is about, under another name. */
function misspell(folder: string, name: string): string {
  const { spec, data, stringData, ...rest } = parse(readFileSync(join(FOLDER, name), 'utf8')) as Record<string, unknown>
  const path = join(folder, basename(name, '.example'))
  writeFileSync(path, stringify({ ...rest, misspelt: spec ?? data ?? stringData }))
  return path
}
