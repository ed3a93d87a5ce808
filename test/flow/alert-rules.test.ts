// deploy/prometheus/alerts.yaml, run by promtool: each alert fires for the instance with the trouble, and not for the one without.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { hasProgram } from '../../prove/debian.ts'
import { runToEnd } from '../support/command.ts'
import { ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const FILE = join(ROOT, 'deploy/prometheus/alerts.yaml')
const skip = hasProgram('promtool') ? false : 'promtool is not installed (Debian: prometheus)'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: { readonly summary: string }
}
const { groups } = parse(readFileSync(FILE, 'utf8')) as { readonly groups: readonly { readonly rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)

/** Values as promtool reads them: `0+1x60` begins with 0 and adds 1 a minute for 60 minutes. */
interface Trouble {
  readonly series: string
  /** Of the instance `bad`, and of `good`. */
  readonly values: readonly [bad: string, good: string]
  /** Others that the rule needs, of both instances. */
  readonly besides?: Readonly<Record<string, string>>
  readonly fires: string
}

/** For 50 hours. */
const flat = (value: number) => `${value}x3000`

const TROUBLES: Readonly<Record<string, Trouble>> = {
  IntrayDown: { series: 'up', values: [flat(0), flat(1)], fires: '5m' },
  IntrayNotReady: { series: 'intray_ready', values: [flat(0), flat(1)], fires: '5m' },
  IntrayAppendsFail: { series: 'intray_append_failures_total', values: ['0 0 0 1x60', flat(0)], fires: '5m' },
  IntrayStorageDamaged: {
    series: 'intray_errors_total{error="storage_damaged"}',
    values: ['0 0 0 1x60', flat(3)],
    fires: '10m',
  },
  IntrayEventsUnreadable: { series: 'intray_unreadable_events', values: [flat(1), flat(0)], fires: '5m' },
  IntrayDiskAlmostFull: {
    series: 'intray_disk_free_bytes',
    values: [flat(9), flat(11)],
    besides: { intray_disk_size_bytes: flat(100) },
    fires: '10m',
  },
  IntrayDiskFillsUp: {
    series: 'intray_disk_free_bytes',
    values: ['30000-10x900', '30000-1x900'],
    besides: { intray_disk_size_bytes: flat(100_000) },
    fires: '8h',
  },
  IntrayOverloaded: {
    series: 'intray_errors_total{error="overloaded"}',
    values: ['0+1x60', flat(7)],
    fires: '12m',
  },
  IntrayInternalErrors: {
    series: 'intray_errors_total{error="internal_error"}',
    values: ['0 0 0 1x60', flat(2)],
    fires: '10m',
  },
  IntrayReadersDelayed: { series: 'intray_watermark_age_seconds', values: [flat(61), flat(59)], fires: '5m' },
  IntrayIndexBehind: { series: 'intray_index_lag', values: ['100000+500x60', '300000-500x60'], fires: '30m' },
  IntrayPendingOld: { series: 'intray_oldest_pending_seconds', values: [flat(3700), flat(3500)], fires: '10m' },
  IntrayBackupOld: { series: 'intray_backup_age_seconds', values: [flat(172_900), flat(172_700)], fires: '5m' },
  IntrayNoBackup: {
    series: 'intray_backup_age_seconds',
    values: ['_x3000', flat(60)],
    besides: { intray_ready: flat(1) },
    fires: '49h',
  },
  IntrayEndpointFails: { series: 'intray_endpoints_circuit_open', values: [flat(1), '0 1 0 1 0x100'], fires: '20m' },
  IntrayEndpointUnreadable: { series: 'intray_endpoints_unreadable', values: [flat(1), flat(0)], fires: '20m' },
  IntrayErasurePending: { series: 'intray_erasures_pending', values: [flat(1), '0 1 0 1 0x100'], fires: '70m' },
  // promtool's clock begins at 0.
  IntrayCertificateExpires: {
    series: 'intray_tls_certificate_expires_timestamp_seconds',
    values: [flat(7 * 86_400 + 3600), flat(9 * 86_400)],
    fires: '3h',
  },
}

function labelled(series: string, instance: string): string {
  const labels = `job="intray",instance="${instance}"`
  return series.endsWith('}') ? `${series.slice(0, -1)},${labels}}` : `${series}{${labels}}`
}

/** A test of promtool for one alert. */
function promtoolTest({ alert, labels, annotations }: Rule, trouble: Trouble) {
  const { series, values, besides = {}, fires } = trouble
  const expected = {
    exp_labels: { ...labels, job: 'intray', instance: 'bad' },
    exp_annotations: { summary: annotations.summary.replaceAll('{{ $labels.instance }}', 'bad') },
  }
  return {
    interval: '1m',
    input_series: [
      { series: labelled(series, 'bad'), values: values[0] },
      { series: labelled(series, 'good'), values: values[1] },
      ...Object.entries(besides).flatMap(([other, otherValues]) =>
        ['bad', 'good'].map((instance) => ({ series: labelled(other, instance), values: otherValues })),
      ),
    ],
    alert_rule_test: [{ eval_time: fires, alertname: alert, exp_alerts: [expected] }],
  }
}

async function promtool(args: readonly string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await runToEnd(['promtool', ...args], {})
  return { code, said: `${stdout}${stderr}` }
}

async function runTests(tests: readonly object[], rulesFile = FILE) {
  const file = join(tempFolder('alert-rules'), 'tests.yaml')
  writeFileSync(
    file,
    stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }, { aliasDuplicateObjects: false }),
  )
  return promtool(['test', 'rules', file])
}

test('every alert has a trouble here', () => {
  assert.ok(rules.length > 10)
  assert.deepEqual(rules.map(({ alert }) => alert).toSorted(), Object.keys(TROUBLES).toSorted())
})

test('the rules are valid, and each fires for the instance in trouble alone', { skip }, async () => {
  const check = await promtool(['check', 'rules', FILE])
  assert.equal(check.code, 0, check.said)
  assert.match(check.said, new RegExp(`SUCCESS: ${rules.length} rules found`))
  const tested = await runTests(rules.map((rule) => promtoolTest(rule, TROUBLES[rule.alert]!)))
  assert.equal(tested.code, 0, tested.said)
})

test('the control: a rule that does not fire, and one that fires for both instances, are found', { skip }, async () => {
  const rule = rules.find(({ alert }) => alert === 'IntrayPendingOld')!
  const trouble = TROUBLES.IntrayPendingOld!
  for (const values of [
    [flat(10), flat(10)],
    [flat(9999), flat(9999)],
  ] as const) {
    const tested = await runTests([promtoolTest(rule, { ...trouble, values })])
    assert.equal(tested.code, 1, tested.said)
    assert.match(tested.said, /FAILED/)
  }
})

test('docs/operating/monitoring.md lists every alert, and no other', () => {
  const text = readFileSync(join(ROOT, 'docs/operating/monitoring.md'), 'utf8')
  const listed = Array.from(text.matchAll(/^\| `(Intray\w+)` \|/gm), ([, name]) => name)
  assert.deepEqual(
    listed,
    rules.map(({ alert }) => alert),
  )
})
