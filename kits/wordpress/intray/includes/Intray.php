<?php
/**
 * Intray for PHP. `send()` commits a message to an outbox in your database; `flush()`, run by cron, sends it until Intray
 * confirms that it is stored. PHP 7.4 or newer with ext-curl and PDO (SQLite, MySQL or PostgreSQL); no other dependency.
 *
 *   require 'Intray.php';
 *   $intray = new Intray\Intray(['outbox' => 'sqlite:/var/lib/site/intray.db']);
 *   $intray->send(['message' => ['type' => 'text', 'text' => 'Do you ship to Malta?']]);
 *
 *   * * * * * INTRAY_URL=… INTRAY_TOKEN=… INTRAY_OUTBOX=sqlite:/var/lib/site/intray.db php Intray.php flush
 *
 * The states of a row:
 *
 *   waiting ──► sent       200 with the receipt of the service
 *      │  ▲
 *      │  └──── waiting    408, 429, 5xx, no answer: after Retry-After or a back-off; 401, 403, a redirect: all rows after 60 s
 *      ▼
 *   refused ──► waiting    any other 4xx: kept until somebody calls resend()
 *
 * A sender claims a row for 120 s by compare-and-set; if it dies, another one sends the same bytes again, and Intray
 * recognises them by their source_ref.
 */

declare(strict_types=1);

namespace Intray;

/** The answer to one request, and what the sender does next. */
final class Answer
{
    public const SENT = 'sent';
    public const RETRY = 'retry';
    public const WAIT = 'wait';
    public const REFUSED = 'refused';

    /** @var int 0 if no answer came. */
    public $status;
    /** @var array<string, mixed>|null The body, if it is a JSON object. */
    public $json;
    /** @var int|null Seconds. */
    public $retryAfter;
    /** @var string Why no answer came. */
    private $failure;

    public function __construct(int $status, string $body, ?string $retryAfter = null, string $failure = '')
    {
        $json = json_decode($body, true);
        $this->status = $status;
        $this->json = is_array($json) ? $json : null;
        $this->retryAfter = self::seconds($retryAfter);
        $this->failure = $failure;
    }

    public function outcome(): string
    {
        $status = $this->status;
        if ($status === 200 && ($this->json['ok'] ?? null) === true && is_int($this->json['id'] ?? null)) {
            return self::SENT;
        }
        if ($status === 401 || $status === 403 || ($status >= 300 && $status < 400)) {
            return self::WAIT;
        }
        // A 2xx without the receipt comes from a proxy or a captive portal: it stored nothing.
        return $status >= 400 && $status < 500 && $status !== 408 && $status !== 429 ? self::REFUSED : self::RETRY;
    }

    public function problem(): string
    {
        if ($this->status === 0) {
            return 'No answer: ' . (self::text($this->failure) ?? 'for a reason that is no text');
        }
        if ($this->status >= 300 && $this->status < 400) {
            return "HTTP {$this->status}: a redirect, which is not followed with the token. Correct the URL.";
        }
        $said = $this->json['message'] ?? $this->json['error'] ?? null;
        return "HTTP {$this->status}: " . (self::text($said) ?? 'an answer that is not from Intray. Check the URL.');
    }

    /**
     * Up to 400 characters without U+0000, which every database can store; null if there are none.
     *
     * @param mixed $said
     */
    private static function text($said): ?string
    {
        return is_string($said) && preg_match('/^[^\x00]{1,400}/u', $said, $text) === 1 ? $text[0] : null;
    }

    private static function seconds(?string $header): ?int
    {
        $header = trim((string) $header);
        if ($header === '') {
            return null;
        }
        $at = ctype_digit($header) ? null : strtotime($header);
        return $at === false ? null : max(0, $at === null ? (int) $header : $at - time());
    }
}

/** Carries a request to Intray. */
interface Transport
{
    /** Sends these bytes to be stored. Never throws: a failure is an answer with status 0. */
    public function post(string $body): Answer;

    /** Asks whether the token is valid. */
    public function ping(): Answer;
}

final class Curl implements Transport
{
    private const MAX_ANSWER_BYTES = 65536;

    /** @var string */
    private $url;
    /** @var string */
    private $token;
    /** @var array<int, mixed> */
    private $timeouts;
    /** @var resource|\CurlHandle|null Kept, so that one connection carries many messages. */
    private $curl = null;

    public function __construct(
        string $url,
        #[\SensitiveParameter]
        string $token,
        int $connectMs = 5000,
        int $requestMs = 15000
    ) {
        self::check($url, $token);
        $this->url = rtrim($url, '/');
        $this->token = $token;
        $this->timeouts = [CURLOPT_CONNECTTIMEOUT_MS => $connectMs, CURLOPT_TIMEOUT_MS => $requestMs];
    }

    /** Throws if no request can be made with these. */
    public static function check(
        string $url,
        #[\SensitiveParameter]
        string $token
    ): void {
        if (!preg_match('~^https?://[^/\s]+~i', $url)) {
            throw new \InvalidArgumentException('The URL of Intray is missing or does not begin with https://. Set INTRAY_URL.');
        }
        if ($token === '' || preg_match('/[^\x21-\x7e]/', $token)) {
            throw new \InvalidArgumentException('The token of Intray is missing or was not copied whole. Set INTRAY_TOKEN.');
        }
    }

    public function post(string $body): Answer
    {
        return $this->request('/v1/inbox/events', [CURLOPT_POST => true, CURLOPT_POSTFIELDS => $body]);
    }

    public function ping(): Answer
    {
        return $this->request('/api/ping', []);
    }

    /** @return array<string, string> Without the token. */
    public function __debugInfo(): array
    {
        return ['url' => $this->url];
    }

    /** @param array<int, mixed> $options */
    private function request(string $path, array $options): Answer
    {
        $curl = $this->curl = $this->curl ?? curl_init();
        curl_reset($curl);
        $text = '';
        $retryAfter = null;
        curl_setopt_array($curl, $options + $this->timeouts + [
            CURLOPT_URL => $this->url . $path,
            CURLOPT_HTTPHEADER => ["Authorization: Bearer {$this->token}", 'Content-Type: application/json', 'Expect:'],
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$retryAfter): int {
                if (stripos($line, 'Retry-After:') === 0) {
                    $retryAfter = substr($line, 12);
                }
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $part) use (&$text): int {
                $text .= $part;
                return strlen($text) > self::MAX_ANSWER_BYTES ? 0 : strlen($part);
            },
        ]);
        // Part of an answer is no answer: a receipt that was cut off may be half of another page.
        if (curl_exec($curl) === false) {
            return new Answer(0, '', null, curl_error($curl));
        }
        $text = str_replace($this->token, '[token]', $text);
        return new Answer((int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $text, $retryAfter);
    }
}

/** Where the outbox is kept. Statements have `?` for their values. Failures throw. */
interface Database
{
    /** @return string sqlite, mysql or pgsql */
    public function dialect(): string;

    /**
     * @param list<int|string|null> $values
     * @return list<array<string, mixed>>
     */
    public function select(string $sql, array $values): array;

    /**
     * @param list<int|string|null> $values
     * @return int How many rows it changed.
     */
    public function change(string $sql, array $values = []): int;
}

final class PdoDatabase implements Database
{
    /** @var \PDO */
    private $pdo;

    public function __construct(\PDO $pdo)
    {
        $this->pdo = $pdo;
    }

    public static function open(
        string $dsn,
        ?string $user,
        #[\SensitiveParameter]
        ?string $password
    ): self {
        $pdo = new \PDO($dsn, $user, $password, [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION]);
        if ($pdo->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'sqlite') {
            $pdo->setAttribute(\PDO::ATTR_TIMEOUT, 10);
            // A commit is on disk before send() returns, and a reader does not block it.
            $pdo->exec('PRAGMA journal_mode = WAL');
            $pdo->exec('PRAGMA synchronous = FULL');
        }
        return new self($pdo);
    }

    public function dialect(): string
    {
        return (string) $this->pdo->getAttribute(\PDO::ATTR_DRIVER_NAME);
    }

    public function select(string $sql, array $values): array
    {
        return array_values($this->run($sql, $values)->fetchAll(\PDO::FETCH_ASSOC));
    }

    public function change(string $sql, array $values = []): int
    {
        return $this->run($sql, $values)->rowCount();
    }

    /** @param list<int|string|null> $values */
    private function run(string $sql, array $values): \PDOStatement
    {
        $statement = $this->pdo->prepare($sql);
        foreach ($statement ? $values : [] as $i => $value) {
            $type = $value === null ? \PDO::PARAM_NULL : (is_int($value) ? \PDO::PARAM_INT : \PDO::PARAM_STR);
            $statement->bindValue($i + 1, $value, $type);
        }
        // The connection may be the application's, in PDO's silent mode.
        if (!$statement || !$statement->execute()) {
            $info = ($statement ?: $this->pdo)->errorInfo();
            throw new \RuntimeException('The outbox cannot be reached: ' . ($info[2] ?? 'unknown error'));
        }
        return $statement;
    }
}

/** Messages that are to be sent, in a table. Times are milliseconds since 1970. */
final class Outbox
{
    private const CLAIM_MS = 120000;
    private const WAIT_MS = 60000;
    private const MAX_RETRY_AFTER_MS = 3600000;
    private const FIRST_BACKOFF_MS = 1000;
    private const MAX_BACKOFF_MS = 300000;
    private const MAX_FAILURES_IN_A_ROW = 3;
    private const MAX_REF = 512;

    /** @var Database */
    private $db;
    /** @var string */
    private $table;

    public function __construct(Database $db, string $table = 'intray_outbox')
    {
        if (!preg_match('/^[A-Za-z_][A-Za-z0-9_]*$/', $table)) {
            throw new \InvalidArgumentException('The name of the outbox table may have letters, digits and underscores.');
        }
        $this->db = $db;
        $this->table = $table;
    }

    public function create(): void
    {
        $dialect = $this->db->dialect();
        $isMysql = $dialect === 'mysql';
        $id = ['sqlite' => 'INTEGER PRIMARY KEY AUTOINCREMENT', 'pgsql' => 'BIGSERIAL PRIMARY KEY'][$dialect]
            ?? 'BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY';
        $text = $isMysql ? 'LONGTEXT' : 'TEXT';
        // References are compared byte for byte, as Intray does.
        $rest = $isMysql
            ? ', KEY due (status, next_at), KEY channel (channel_ref(190), status)
               ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin'
            : ')';
        $this->db->change("CREATE TABLE IF NOT EXISTS {$this->table} (
            id $id,
            source_ref VARCHAR(512) NOT NULL,
            channel_ref VARCHAR(512),
            body $text NOT NULL,
            created_at BIGINT NOT NULL,
            attempts INT NOT NULL,
            next_at BIGINT NOT NULL,
            claimed_until BIGINT NOT NULL,
            status VARCHAR(8) NOT NULL,
            last_error $text
            $rest");
        foreach ($isMysql ? [] : ['due' => 'status, next_at', 'channel' => 'channel_ref, status'] as $name => $columns) {
            $this->db->change("CREATE INDEX IF NOT EXISTS {$this->table}_$name ON {$this->table} ($columns)");
        }
    }

    /**
     * Commits a message and returns its source_ref, a new one if the message has none. The bytes are made here, once.
     *
     * @param array<string, mixed> $message
     */
    public function add(array $message): string
    {
        $sourceRef = self::ref($message, 'source_ref') ?? 'php:' . self::uuid();
        $channelRef = self::ref($message, 'channel_ref');
        // Text that is not UTF-8 is sent with a replacement character: better than a message that cannot be sent at all.
        $flags = JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;
        $refs = ['source_ref' => $sourceRef] + ($channelRef === null ? [] : ['channel_ref' => $channelRef]);
        $body = json_encode($refs + $message, $flags);
        if (!is_string($body)) {
            throw new \InvalidArgumentException('The message cannot be written as JSON: ' . json_last_error_msg());
        }
        $now = self::now();
        $values = [$sourceRef, $channelRef, $body, $now, $now];
        $sql = "INSERT INTO {$this->table}
            (source_ref, channel_ref, body, created_at, attempts, next_at, claimed_until, status)
            VALUES (?, ?, ?, ?, 0, ?, 0, 'waiting')";
        try {
            $this->db->change($sql, $values);
        } catch (\Exception $missing) {
            $this->create();
            $this->db->change($sql, $values);
        }
        return $sourceRef;
    }

    /**
     * Sends what is due: until nothing is, the time is over, or Intray cannot be reached.
     *
     * @return array{sent: int, refused: int, problem: string|null}
     */
    public function flush(Transport $transport, int $seconds = 50): array
    {
        $done = ['sent' => 0, 'refused' => 0, 'problem' => null];
        $end = self::now() + $seconds * 1000;
        for ($failures = 0; $failures < self::MAX_FAILURES_IN_A_ROW && self::now() < $end; ) {
            $row = $this->claim();
            if ($row === null) {
                break;
            }
            $answer = $transport->post($row['body']);
            $outcome = $answer->outcome();
            $this->settle($row, $answer);
            if ($outcome === Answer::SENT) {
                $done['sent']++;
                $failures = 0;
                continue;
            }
            $done['problem'] = $answer->problem();
            if ($outcome === Answer::REFUSED) {
                $done['refused']++;
                $failures = 0;
            } elseif ($outcome === Answer::WAIT || $answer->retryAfter !== null) {
                break;
            } else {
                $failures++;
            }
        }
        return $done;
    }

    /** @return array{waiting: int, refused: int, oldest_at: int|null} oldest_at: of those that wait. */
    public function state(): array
    {
        $state = ['waiting' => 0, 'refused' => 0, 'oldest_at' => null];
        $rows = $this->db->select("SELECT status, COUNT(*) AS n, MIN(created_at) AS oldest FROM {$this->table}
            WHERE status IN ('waiting', 'refused') GROUP BY status", []);
        foreach ($rows as $row) {
            $state[$row['status']] = (int) $row['n'];
            if ($row['status'] === 'waiting') {
                $state['oldest_at'] = (int) $row['oldest'];
            }
        }
        return $state;
    }

    /** @return list<array<string, mixed>> Waiting and refused messages, the oldest first. */
    public function unsent(int $limit = 50): array
    {
        return $this->db->select("SELECT id, source_ref, channel_ref, created_at, attempts, next_at, status, last_error
            FROM {$this->table} WHERE status IN ('waiting', 'refused') ORDER BY id LIMIT ?", [$limit]);
    }

    /** Whether an attempt failed and its message waits: a web request then leaves sending to cron. */
    public function isFailing(): bool
    {
        $sql = "SELECT id FROM {$this->table} WHERE status = 'waiting' AND last_error IS NOT NULL LIMIT 1";
        return $this->db->select($sql, []) !== [];
    }

    /** Makes refused messages wait again, with the same bytes: all of them, or the one with this id. Returns how many. */
    public function resend(?int $id = null): int
    {
        $only = $id === null ? '' : ' AND id = ?';
        return $this->db->change("UPDATE {$this->table} SET status = 'waiting', next_at = ?, last_error = NULL
            WHERE status = 'refused'$only", $id === null ? [self::now()] : [self::now(), $id]);
    }

    /** Makes all waiting messages due now: after a setting was corrected. Returns how many. */
    public function retryNow(): int
    {
        return $this->db->change("UPDATE {$this->table} SET next_at = ? WHERE status = 'waiting'", [self::now()]);
    }

    /** Deletes messages that were sent, and no others. */
    public function prune(int $days = 7): int
    {
        $sql = "DELETE FROM {$this->table} WHERE status = 'sent' AND created_at < ?";
        return $this->db->change($sql, [self::now() - $days * 86400000]);
    }

    /** @return array<string, mixed>|null */
    private function claim(): ?array
    {
        for (;;) {
            $now = self::now();
            $until = $now + self::CLAIM_MS;
            // A time further ahead than any that is ever written comes from a clock that has been set back.
            $rows = $this->db->select("SELECT id, body, attempts, claimed_until FROM {$this->table} AS o
                WHERE status = 'waiting' AND (next_at <= ? OR next_at > ?) AND (claimed_until <= ? OR claimed_until > ?)
                AND (channel_ref IS NULL OR NOT EXISTS (SELECT 1 FROM {$this->table} AS earlier
                    WHERE earlier.channel_ref = o.channel_ref AND earlier.status = 'waiting' AND earlier.id < o.id))
                ORDER BY next_at, id LIMIT 1", [$now, $now + self::MAX_RETRY_AFTER_MS, $now, $until]);
            if ($rows === []) {
                return null;
            }
            $row = $rows[0];
            $changed = $this->db->change("UPDATE {$this->table} SET claimed_until = ?, attempts = attempts + 1
                WHERE id = ? AND status = 'waiting' AND claimed_until = ?", [$until, (int) $row['id'], (int) $row['claimed_until']]);
            if ($changed === 1) {
                return ['claimed_until' => $until, 'attempts' => (int) $row['attempts'] + 1] + $row;
            }
        }
    }

    /** @param array<string, mixed> $row */
    private function settle(array $row, Answer $answer): void
    {
        $id = (int) $row['id'];
        $outcome = $answer->outcome();
        if ($outcome === Answer::SENT) {
            $this->db->change("UPDATE {$this->table} SET status = 'sent', last_error = NULL WHERE id = ?", [$id]);
            return;
        }
        $status = $outcome === Answer::REFUSED ? 'refused' : 'waiting';
        $nextAt = self::now() + ($outcome === Answer::WAIT ? self::WAIT_MS : self::delayMs((int) $row['attempts'], $answer));
        // Only while the claim is ours: after 120 s another sender may have taken the row.
        $this->db->change("UPDATE {$this->table} SET status = ?, next_at = ?, claimed_until = 0, last_error = ?
            WHERE id = ? AND status = 'waiting' AND claimed_until = ?",
            [$status, $nextAt, $answer->problem(), $id, $row['claimed_until']]);
        if ($outcome === Answer::WAIT) {
            $this->db->change("UPDATE {$this->table} SET next_at = ? WHERE status = 'waiting' AND next_at < ?", [$nextAt, $nextAt]);
        }
    }

    private static function delayMs(int $attempts, Answer $answer): int
    {
        if ($answer->retryAfter !== null) {
            return min($answer->retryAfter * 1000, self::MAX_RETRY_AFTER_MS);
        }
        return random_int(0, min(self::MAX_BACKOFF_MS, self::FIRST_BACKOFF_MS << min($attempts - 1, 20)));
    }

    /**
     * Null if it is absent, by the rules of Intray.
     *
     * @param array<string, mixed> $message
     */
    private static function ref(array $message, string $name): ?string
    {
        $value = $message[$name] ?? null;
        $ref = is_int($value) ? (string) $value : $value;
        if ($ref === null || (is_string($ref) && trim($ref) === '')) {
            return null;
        }
        if (!is_string($ref) || strlen($ref) > self::MAX_REF || !preg_match('//u', $ref) || strpos($ref, "\0") !== false) {
            throw new \InvalidArgumentException("$name must be text in UTF-8 of at most 512 bytes, without U+0000.");
        }
        return $ref;
    }

    public static function uuid(): string
    {
        $hex = bin2hex(random_bytes(16));
        $hex[12] = '4';
        $hex[16] = '89ab'[hexdec($hex[16]) & 3];
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split($hex, 4));
    }

    private static function now(): int
    {
        return (int) floor(microtime(true) * 1000);
    }
}

/** The kit for a site or a script: settings come from the options, constants or the environment, in this order. */
final class Intray
{
    /** @var array<string, mixed> */
    private $options;
    /** @var Outbox|null */
    private $outbox = null;

    /** @param array<string, mixed> $options url, token, outbox (a DSN or a PDO), user, password, table, days */
    public function __construct(
        #[\SensitiveParameter]
        array $options = []
    ) {
        $this->options = $options;
    }

    /**
     * Commits the message to the outbox and returns its source_ref.
     *
     * @param array<string, mixed> $message
     */
    public function send(array $message): string
    {
        return $this->outbox()->add($message);
    }

    /** @return array{sent: int, refused: int, problem: string|null} */
    public function flush(int $seconds = 50): array
    {
        $this->outbox()->create();
        try {
            $transport = $this->transport();
        } catch (\InvalidArgumentException $unset) {
            return ['sent' => 0, 'refused' => 0, 'problem' => $unset->getMessage()];
        }
        $done = $this->outbox()->flush($transport, $seconds);
        $this->outbox()->prune((int) ($this->options['days'] ?? 7));
        return $done;
    }

    /**
     * Sends once the visitor has the answer, where the server can do that and Intray answers; cron does the rest.
     */
    public function flushAfterAnswer(): void
    {
        register_shutdown_function(function (): void {
            if (self::finishRequest() && !$this->outbox()->isFailing()) {
                $this->flush(15);
            }
        });
    }

    /** Gives the visitor the answer now, and says whether this server can: php-fpm and LiteSpeed do. */
    public static function finishRequest(): bool
    {
        foreach (['fastcgi_finish_request', 'litespeed_finish_request'] as $finish) {
            if (function_exists($finish)) {
                // The visitor's next request must not wait for the lock of the session.
                if (session_status() === PHP_SESSION_ACTIVE) {
                    session_write_close();
                }
                return (bool) $finish();
            }
        }
        return false;
    }

    public function transport(): Transport
    {
        return new Curl($this->setting('url', 'INTRAY_URL') ?? '', trim($this->setting('token', 'INTRAY_TOKEN') ?? ''));
    }

    public function outbox(): Outbox
    {
        if ($this->outbox === null) {
            $where = $this->options['outbox'] ?? $this->setting('outbox', 'INTRAY_OUTBOX');
            if ($where === null) {
                throw new \InvalidArgumentException('Set INTRAY_OUTBOX, such as sqlite:/var/lib/site/intray.db.');
            }
            $user = $this->setting('user', 'INTRAY_OUTBOX_USER');
            $password = $this->setting('password', 'INTRAY_OUTBOX_PASSWORD');
            $database = $where instanceof \PDO ? new PdoDatabase($where) : PdoDatabase::open($where, $user, $password);
            $this->outbox = new Outbox($database, $this->options['table'] ?? 'intray_outbox');
        }
        return $this->outbox;
    }

    /** @return array<string, string> Without the token and the password. */
    public function __debugInfo(): array
    {
        return ['url' => (string) $this->setting('url', 'INTRAY_URL')];
    }

    private function setting(string $option, string $name): ?string
    {
        $value = $this->options[$option] ?? (defined($name) ? constant($name) : getenv($name));
        return is_string($value) && $value !== '' ? $value : null;
    }
}

/** `php Intray.php <command>`. */
function main(array $arguments): int
{
    $intray = new Intray();
    $command = $arguments[1] ?? '';
    try {
        if ($command === 'flush') {
            ['sent' => $sent, 'refused' => $refused, 'problem' => $problem] = $intray->flush();
            ['waiting' => $waiting] = $intray->outbox()->state();
            $line = "sent $sent, refused $refused, waiting $waiting";
        } elseif ($command === 'resend') {
            $line = $intray->outbox()->resend() . ' refused messages wait again';
            $intray->outbox()->retryNow();
            $problem = null;
        } elseif ($command === 'ping') {
            $answer = $intray->transport()->ping();
            $line = $answer->status === 200 && isset($answer->json['ok']) ? 'The token is valid.' : '';
            $problem = $line === '' ? $answer->problem() : null;
        } else {
            throw new \InvalidArgumentException('Usage: php Intray.php flush | resend | ping');
        }
    } catch (\Exception $error) {
        fwrite(STDERR, $error->getMessage() . "\n");
        return 2;
    }
    if ($line !== '') {
        echo "$line\n";
    }
    if ($problem !== null) {
        fwrite(STDERR, "$problem\n");
        return 1;
    }
    return 0;
}

if (PHP_SAPI === 'cli' && realpath($_SERVER['SCRIPT_FILENAME'] ?? '') === __FILE__) {
    exit(main($_SERVER['argv']));
}
