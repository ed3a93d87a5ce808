// What the version after this one would be: the sources of the checkout with one more migration, in a folder of their own.

import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'

const PARTS = ['intray', 'package.json', 'api/openapi.yaml', 'src', 'kits/typescript/src']

const migration = (schema: string) => `
ALTER TABLE ${schema}events ADD COLUMN later TEXT;
UPDATE ${schema}events SET later = 'migrated';
CREATE TABLE ${schema}later (company_id INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (company_id, id));
INSERT INTO ${schema}later SELECT company_id, id FROM ${schema}events;
`

/** Returns its launcher. `number`: of its migration. */
export function nextVersion(number: number): string {
  const folder = tempFolder('next-version')
  for (const part of PARTS) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const name = `${String(number).padStart(4, '0')}_test.sql`
  const schemas = { sqlite: '', postgres: 'intray.' }
  for (const [driver, schema] of Object.entries(schemas))
    writeFileSync(join(folder, 'src/store', driver, 'migrations', name), migration(schema))
  return join(folder, 'intray')
}
