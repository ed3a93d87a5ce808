// A WordPress site for one test file: Debian's files, a database of its own, our plugin, and the servers people run it on.

import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { hasProgram, isRoot } from '../../../prove/debian.ts'
import { type Background, startBackground } from '../background.ts'
import { runToEnd } from '../command.ts'
import { hasMariadb, type Mariadb, MARIADB_PACKAGES, startMariadb } from '../mariadb.ts'
import { hasPhp, PHP_PACKAGES } from '../php.ts'
import { type Finished, ROOT } from '../process.ts'
import { tempFolder } from '../temp.ts'

const DEBIAN_FILES = '/usr/share/wordpress'
const APACHE_MODULES = ['mpm_event', 'authz_core', 'dir', 'mime', 'proxy', 'proxy_fcgi']
const PLUGIN = join(ROOT, 'kits/wordpress/intray')
export const ADMIN = { name: 'admin', password: 'correct horse battery staple' } as const

export const WORDPRESS_PACKAGES = [...PHP_PACKAGES, ...MARIADB_PACKAGES, 'wordpress', 'apache2'] as const

function fpmProgram(): string | undefined {
  return readdirSync('/usr/sbin').find((name) => /^php-fpm\d/.test(name))
}

export function hasWordpress(): boolean {
  return hasPhp() && hasMariadb() && hasProgram('apache2') && fpmProgram() !== undefined && isReadable(DEBIAN_FILES)
}

function isReadable(folder: string): boolean {
  try {
    return readdirSync(folder).includes('wp-settings.php')
  } catch {
    return false
  }
}

/** For `skip` of a test. */
export function missingWordpress(): string | false {
  return !hasWordpress() && 'not run: WordPress, MariaDB, PHP with php-fpm and Apache are not installed'
}

export interface Site {
  readonly folder: string
  /** Runs PHP inside WordPress to its end. */
  php(code: string, env?: Record<string, string>): Promise<Finished>
  /** Its output; fails if the script does. */
  print(code: string, env?: Record<string, string>): Promise<string>
  /** PHP's built-in server; resolves with the address. */
  serveBuiltIn(): Promise<string>
  /** Apache in front of php-fpm; resolves with the address. */
  serveFpm(): Promise<string>
  /** Sets DISABLE_WP_CRON, or not. */
  disableCron(isDisabled: boolean): void
  stop(): Promise<void>
}

/** The form of a theme: what no form plugin handles goes through the action. The control sends at once, and once. */
const FORM = `<?php
add_action('init', static function (): void {
    if (!isset($_POST['lead'])) {
        return;
    }
    $lead = ['source_ref' => $_POST['lead'], 'message' => ['type' => 'text', 'text' => 'Lead']];
    if (isset($_POST['control'])) {
        wp_remote_post($_POST['control'] . '/v1/inbox/events', ['body' => wp_json_encode($lead), 'headers' => [
            'Content-Type' => 'application/json', 'Authorization' => "Bearer {$_POST['token']}"]]);
    } else {
        do_action('intray_send', $lead);
    }
    if (isset($_POST['die'])) {
        posix_kill(getmypid(), 9);
    }
    echo 'Thank you.';
    exit;
});`

const THEME = `<!DOCTYPE html><html><head><?php wp_head(); ?></head><body>
<?php while (have_posts()) { the_post(); the_content(); } wp_footer(); ?></body></html>`

const INSTALL = `
define('WP_INSTALLING', true);
require getenv('SITE') . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
wp_install('Site', getenv('ADMIN'), 'admin@example.org', false, '', getenv('PASSWORD'));
switch_theme('plain');
foreach (explode(',', getenv('PLUGINS')) as $plugin) {
    $problem = activate_plugin($plugin);
    if (is_wp_error($problem)) {
        throw new Exception($problem->get_error_message());
    }
}`

export interface SiteOptions {
  /** A folder of Contact Form 7. */
  readonly cf7?: string
  /** More lines for wp-config.php. */
  readonly config?: string
}

export async function installSite({ cf7, config = '' }: SiteOptions = {}): Promise<Site> {
  const folder = tempFolder('wordpress')
  chmodSync(folder, 0o755)
  const mariadb = await startMariadb(tempFolder('db'))
  const running: { stop(): Promise<void> }[] = [mariadb]
  try {
    await mariadb.createDatabase('wordpress')
    writeFiles(folder, mariadb, config, cf7)
    const php = (code: string, env: Record<string, string> = {}) =>
      runToEnd(['php', '-d', 'display_errors=stderr', '-r', code], { SITE: folder, ...env })
    const inside = (code: string, env?: Record<string, string>) =>
      php(`require getenv('SITE') . '/wp-load.php'; ${code}`, env)
    const plugins = [...(cf7 === undefined ? [] : ['contact-form-7/wp-contact-form-7.php']), 'intray/intray.php']
    const env = { ADMIN: ADMIN.name, PASSWORD: ADMIN.password, PLUGINS: plugins.join() }
    const { code, stderr } = await php(INSTALL, env)
    if (code !== 0) throw new Error(`WordPress was not installed: ${stderr}`)
    const serve = async (start: Promise<{ server: Background; url: string }>) => {
      const { server, url } = await start
      running.push(server)
      return url
    }
    return {
      folder,
      php: inside,
      print: async (script, env) => {
        const { code, stdout, stderr } = await inside(script, env)
        if (code !== 0 || stderr !== '') throw new Error(`PHP ended with ${code}: ${stdout} ${stderr}`)
        return stdout.toString()
      },
      serveBuiltIn: () => serve(startBuiltIn(folder)),
      serveFpm: async () => {
        const socket = join(folder, 'fpm.sock')
        running.push(await startFpm(folder, socket))
        return serve(startApache(folder, socket))
      },
      disableCron: (isDisabled) => {
        const flag = join(folder, 'disable-wp-cron')
        if (isDisabled) writeFileSync(flag, '')
        else rmSync(flag, { force: true })
      },
      stop: async () => {
        for (const one of running.splice(0).toReversed()) await one.stop()
      },
    }
  } catch (error) {
    await mariadb.stop()
    throw error
  }
}

function writeFiles(folder: string, { socket, user }: Mariadb, config: string, cf7?: string): void {
  for (const name of readdirSync(DEBIAN_FILES)) {
    if (['wp-config.php', 'wp-content', '.htaccess'].includes(name)) continue
    cpSync(join(DEBIAN_FILES, name), join(folder, name), { recursive: true, dereference: true })
  }
  const content = join(folder, 'wp-content')
  for (const name of ['plugins', 'mu-plugins', 'themes/plain', 'uploads'])
    mkdirSync(join(content, name), { recursive: true })
  chmodSync(join(content, 'uploads'), 0o777)
  cpSync(PLUGIN, join(content, 'plugins/intray'), { recursive: true })
  if (cf7 !== undefined) cpSync(cf7, join(content, 'plugins/contact-form-7'), { recursive: true })
  writeFileSync(join(content, 'mu-plugins/form.php'), FORM)
  writeFileSync(join(content, 'themes/plain/style.css'), '/*\nTheme Name: Plain\n*/')
  writeFileSync(join(content, 'themes/plain/index.php'), THEME)
  writeFileSync(
    join(folder, 'wp-config.php'),
    `<?php
define('DB_NAME', 'wordpress');
define('DB_USER', '${user}');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:${socket}');
define('DB_CHARSET', 'utf8mb4');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define("{$name}_KEY", "key of $name");
    define("{$name}_SALT", "salt of $name");
}
$table_prefix = 'wp_';
define('WP_HOME', 'http://' . ($_SERVER['HTTP_HOST'] ?? 'site.example'));
define('WP_SITEURL', WP_HOME);
// No test asks wordpress.org for anything.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_ACCESSIBLE_HOSTS', '127.0.0.1');
define('AUTOMATIC_UPDATER_DISABLED', true);
// A script has no address at which it could call WP-Cron, and would hold its lock for a minute.
if (PHP_SAPI === 'cli' || file_exists(__DIR__ . '/disable-wp-cron')) {
    define('DISABLE_WP_CRON', true);
}
${config}
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
`,
  )
}

async function startBuiltIn(folder: string): Promise<{ server: Background; url: string }> {
  const server = await startBackground(['php', '-S', '127.0.0.1:0', '-t', folder], {
    ready: /Development Server \(http:\S+\) started/,
    // WP-Cron is a request of the site to itself.
    env: { PHP_CLI_SERVER_WORKERS: '4' },
  })
  return { server, url: /\((http:\S+)\)/.exec(server.output())![1]! }
}

async function startFpm(folder: string, socket: string): Promise<Background> {
  const file = join(folder, 'fpm.conf')
  const log = join(folder, 'fpm.log')
  writeFileSync(
    file,
    `[global]
error_log = ${log}
daemonize = no
[www]
listen = ${socket}
listen.mode = 0666
${isRoot ? 'user = root\ngroup = root' : ''}
pm = static
pm.max_children = 3
`,
  )
  return startBackground([`/usr/sbin/${fpmProgram()}`, '-F', ...(isRoot ? ['-R'] : []), '-y', file], {
    ready: /ready to handle connections/,
    log,
  })
}

async function startApache(folder: string, socket: string): Promise<{ server: Background; url: string }> {
  for (let attempt = 0; ; attempt++) {
    const port = await freePort()
    const file = join(folder, 'apache.conf')
    const log = join(folder, `apache-${port}.log`)
    writeFileSync(
      file,
      `ServerRoot ${folder}
ServerName 127.0.0.1
PidFile ${folder}/apache-${port}.pid
DefaultRuntimeDir ${folder}
Listen 127.0.0.1:${port}
ErrorLog ${log}
${APACHE_MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
User ${isRoot ? 'www-data' : `#${process.getuid?.()}`}
Group ${isRoot ? 'www-data' : `#${process.getgid?.()}`}
TypesConfig /dev/null
AddType text/css .css
AddType text/javascript .js
DocumentRoot ${folder}
DirectoryIndex index.php
ProxyTimeout 600
KeepAlive Off
<FilesMatch "\\.php$">
  SetHandler "proxy:unix:${socket}|fcgi://localhost/"
</FilesMatch>
`,
    )
    try {
      const command = ['/usr/sbin/apache2', '-f', file, '-DFOREGROUND']
      const server = await startBackground(command, { ready: /resuming normal operations/, log })
      return { server, url: `http://127.0.0.1:${port}` }
    } catch (error) {
      // Another process may take the port between our look and the start.
      if (attempt === 4) throw error
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
