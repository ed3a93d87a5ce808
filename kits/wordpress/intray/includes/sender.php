<?php
/**
 * Takes messages into the outbox while the visitor waits, and sends them when nobody does: after the answer where the
 * server can do that, otherwise through WP-Cron.
 */

declare(strict_types=1);

namespace Intray\WordPress;

use Intray\Intray;
use Intray\Outbox;
use Intray\Transport;

defined( 'ABSPATH' ) || exit;

final class Sender {

	/** Every minute. */
	public const EVENT = 'intray_flush';
	/** Once, soon: WP-Cron takes an event of the same name within ten minutes for a duplicate. */
	public const EVENT_NOW = 'intray_flush_now';

	private const SCHEMA_VERSION = '1';
	private const INTERVAL       = 'intray_minute';
	private const AFTER_ANSWER_S = 15;

	/** @var bool */
	private static $is_ending_planned = false;

	public static function start(): void {
		// phpcs:ignore WordPress.WP.CronInterval.CronSchedulesInterval -- a lead should not wait for longer.
		add_filter( 'cron_schedules', array( self::class, 'add_interval' ) );
		add_action( self::EVENT, array( self::class, 'flush' ), 10, 0 );
		add_action( self::EVENT_NOW, array( self::class, 'flush' ), 10, 0 );
		add_action( 'intray_send', array( self::class, 'send' ) );
		add_action( 'init', array( self::class, 'prepare' ) );
		add_action( 'update_option_' . Settings::TOKEN, array( self::class, 'retry_now' ), 10, 0 );
		add_action( 'update_option_' . Settings::URL, array( self::class, 'retry_now' ), 10, 0 );
		// True here in a request to wp-cron.php, and in no other.
		if ( wp_doing_cron() ) {
			self::answer_cron();
			add_action( 'shutdown', array( self::class, 'finish_cron' ), PHP_INT_MAX, 0 );
		}
		register_activation_hook( PLUGIN_FILE, array( self::class, 'prepare' ) );
		register_deactivation_hook( PLUGIN_FILE, array( self::class, 'unschedule' ) );
	}

	/**
	 * Commits a message to the outbox and returns its source_ref; null if it could be neither kept nor sent.
	 *
	 * @param array<string, mixed> $message
	 */
	public static function send( array $message ): ?string {
		$source_ref = array( 'source_ref' => 'wp:' . wp_generate_uuid4() );
		try {
			try {
				$kept = self::outbox()->add( $message + $source_ref );
			} catch ( \InvalidArgumentException $unusable ) {
				_doing_it_wrong( 'intray_send', esc_html( $unusable->getMessage() ), '0.2.0' );
				unset( $message['channel_ref'] );
				// With other references the message is kept all the same.
				$kept = self::outbox()->add( $source_ref + $message );
			}
		} catch ( \InvalidArgumentException $unusable ) {
			return null;
		} catch ( \RuntimeException $unreachable ) {
			return self::send_now( $message + $source_ref, $unreachable );
		}
		if ( ! self::$is_ending_planned ) {
			self::$is_ending_planned = true;
			add_action( 'shutdown', array( self::class, 'after_answer' ), PHP_INT_MAX );
		}
		return $kept;
	}

	/** @return array{sent: int, refused: int, problem: string|null} */
	public static function flush( int $seconds = 50 ): array {
		try {
			$done = self::outbox()->flush( self::transport(), $seconds );
			/** Filters for how many days messages are kept after they were sent. */
			self::outbox()->prune( (int) apply_filters( 'intray_keep_sent_days', 7 ) );
			return $done;
		} catch ( \Exception $error ) {
			return array(
				'sent'    => 0,
				'refused' => 0,
				'problem' => $error->getMessage(),
			);
		}
	}

	/** While Intray is down, only cron tries: otherwise every visitor would keep a process busy for the time-out. */
	public static function after_answer(): void {
		if ( Intray::finishRequest() ) {
			ignore_user_abort( true );
			if ( ! self::is_failing() ) {
				self::flush( self::AFTER_ANSWER_S );
			}
		} elseif ( ! wp_doing_cron() && ! ( defined( 'DISABLE_WP_CRON' ) && DISABLE_WP_CRON ) && ! self::is_failing() ) {
			wp_schedule_single_event( time(), self::EVENT_NOW );
			spawn_cron();
		}
	}

	/** Who starts WP-Cron waits for a second, unless the answer comes earlier; that is the visitor's time. */
	private static function answer_cron(): void {
		if ( 'cli' !== PHP_SAPI && ! headers_sent() ) {
			header( 'Content-Length: 0' );
			header( 'Connection: close' );
			flush();
		}
	}

	/**
	 * A message that came while WP-Cron was at work could not start it again: its lock was held. The lock is gone by now,
	 * so every message either is seen here or has started WP-Cron itself.
	 */
	public static function finish_cron(): void {
		if ( ! self::is_failing() ) {
			self::flush();
		}
	}

	private static function is_failing(): bool {
		try {
			return self::outbox()->isFailing();
		} catch ( \RuntimeException $unreachable ) {
			return true;
		}
	}

	public static function retry_now(): void {
		self::outbox()->retryNow();
	}

	/** Makes sure of the table and of the event, on every site of a network. */
	public static function prepare(): void {
		if ( get_option( Settings::SCHEMA ) !== self::SCHEMA_VERSION ) {
			try {
				self::outbox()->create();
				update_option( Settings::SCHEMA, self::SCHEMA_VERSION );
			} catch ( \RuntimeException $unreachable ) {
				// phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_error_log -- the site goes on without it.
				error_log( "Intray: {$unreachable->getMessage()}" );
			}
		}
		if ( ! wp_next_scheduled( self::EVENT ) ) {
			wp_schedule_event( time(), self::INTERVAL, self::EVENT );
		}
	}

	public static function unschedule(): void {
		wp_clear_scheduled_hook( self::EVENT );
		wp_clear_scheduled_hook( self::EVENT_NOW );
	}

	/**
	 * @param array<string, array<string, mixed>> $schedules
	 * @return array<string, array<string, mixed>>
	 */
	public static function add_interval( array $schedules ): array {
		$schedules[ self::INTERVAL ] = array(
			'interval' => MINUTE_IN_SECONDS,
			'display'  => 'Intray',
		);
		return $schedules;
	}

	public static function outbox(): Outbox {
		global $wpdb;
		return new Outbox( new WpdbDatabase(), "{$wpdb->prefix}intray_outbox" );
	}

	/** Throws if the settings are not complete. */
	public static function transport(): Transport {
		return new HttpTransport( Settings::url(), Settings::token() );
	}

	/** The outbox cannot be written: the visitor waits for one attempt, as without an outbox. */
	private static function send_now( array $message, \RuntimeException $cause ): ?string {
		try {
			$answer  = self::transport()->post( (string) wp_json_encode( $message ) );
			$problem = $answer->outcome() === \Intray\Answer::SENT ? null : $answer->problem();
		} catch ( \InvalidArgumentException $unset ) {
			$problem = $unset->getMessage();
		}
		if ( null === $problem ) {
			return $message['source_ref'];
		}
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_error_log -- the last place where anybody can learn of it.
		error_log( "Intray: a message could be neither kept nor sent. {$cause->getMessage()} $problem" );
		return null;
	}
}
