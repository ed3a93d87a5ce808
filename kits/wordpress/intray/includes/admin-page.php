<?php
/**
 * The page Settings → Intray: address and token, a check of the connection, and the messages that have not arrived.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

final class AdminPage {

	public const CAPABILITY = 'manage_options';

	private const PAGE      = 'intray';
	private const SHOWN     = 50;
	/** What the buttons do: admin-post.php calls them, each with a nonce of its own. */
	private const ACTIONS = array( 'check', 'resend', 'flush' );

	public static function start(): void {
		add_action( 'admin_init', array( Settings::class, 'register' ) );
		add_action( 'admin_menu', array( self::class, 'add' ) );
		add_action( 'admin_notices', array( self::class, 'ask_before_removal' ) );
		foreach ( self::ACTIONS as $action ) {
			add_action(
				"admin_post_intray_$action",
				static function () use ( $action ): void {
					self::act( $action );
				}
			);
		}
		add_filter(
			'plugin_action_links_' . plugin_basename( PLUGIN_FILE ),
			static function ( array $links ): array {
				$link = sprintf( '<a href="%s">%s</a>', esc_url( self::url() ), esc_html__( 'Settings', 'intray' ) );
				return array_merge( array( $link ), $links );
			}
		);
	}

	public static function url(): string {
		return admin_url( 'options-general.php?page=' . self::PAGE );
	}

	public static function add(): void {
		add_options_page( 'Intray', 'Intray', self::CAPABILITY, self::PAGE, array( self::class, 'show' ) );
	}

	/** WordPress asks nothing when it deletes a plugin, so the question is asked on the list of plugins. */
	public static function ask_before_removal(): void {
		$screen = get_current_screen();
		if ( null === $screen || 'plugins' !== $screen->id || ! current_user_can( self::CAPABILITY ) ) {
			return;
		}
		$state  = Sender::outbox()->state();
		$unsent = $state['waiting'] + $state['refused'];
		if ( 0 === $unsent ) {
			return;
		}
		$sentence = get_option( Settings::DELETE_UNSENT )
			/* translators: %d: number of messages */
			? _n( 'If you delete the plugin Intray, %d unsent message is deleted too.', 'If you delete the plugin Intray, %d unsent messages are deleted too.', $unsent, 'intray' )
			/* translators: %d: number of messages */
			: _n( 'If you delete the plugin Intray, %d unsent message stays in the database.', 'If you delete the plugin Intray, %d unsent messages stay in the database.', $unsent, 'intray' );
		printf(
			'<div class="notice notice-warning intray-unsent"><p>%s <a href="%s">%s</a></p></div>',
			esc_html( sprintf( $sentence, $unsent ) ),
			esc_url( self::url() ),
			esc_html__( 'Change this', 'intray' )
		);
	}

	public static function show(): void {
		if ( ! current_user_can( self::CAPABILITY ) ) {
			return;
		}
		echo '<div class="wrap"><h1>Intray</h1>';
		$said = get_transient( self::transient() );
		if ( is_array( $said ) ) {
			delete_transient( self::transient() );
			printf( '<div class="notice notice-%s"><p>%s</p></div>', esc_attr( $said[0] ), esc_html( $said[1] ) );
		}
		self::show_settings();
		self::show_button( 'check', __( 'Check connection', 'intray' ) );
		self::show_messages();
		echo '</div>';
	}

	private static function show_settings(): void {
		$has_token = '' !== Settings::token();
		echo '<form method="post" action="options.php"><table class="form-table" role="presentation">';
		settings_fields( 'intray' );
		self::show_row(
			Settings::URL,
			__( 'URL of Intray', 'intray' ),
			'url',
			Settings::url(),
			Settings::is_constant( 'INTRAY_URL' ) ? __( 'Set by INTRAY_URL in wp-config.php.', 'intray' ) : 'https://inbox.example.org'
		);
		self::show_row(
			Settings::TOKEN,
			__( 'Token', 'intray' ),
			'password',
			'',
			Settings::is_constant( 'INTRAY_TOKEN' )
				? __( 'Set by INTRAY_TOKEN in wp-config.php.', 'intray' )
				: ( $has_token ? __( 'A token is stored. It is never shown again; leave this empty to keep it.', 'intray' ) : __( 'No token is stored.', 'intray' ) )
		);
		printf(
			'<tr><th scope="row">%s</th><td><label><input type="checkbox" name="%s" value="1" %s> %s</label></td></tr></table>',
			esc_html__( 'When the plugin is deleted', 'intray' ),
			esc_attr( Settings::DELETE_UNSENT ),
			checked( (bool) get_option( Settings::DELETE_UNSENT ), true, false ),
			esc_html__( 'Also delete messages that were not sent', 'intray' )
		);
		submit_button();
		echo '</form>';
	}

	private static function show_row( string $name, string $label, string $type, string $value, string $help ): void {
		$is_fixed = Settings::is_constant( strtoupper( $name ) );
		printf(
			'<tr><th scope="row"><label for="%1$s">%2$s</label></th><td>
			<input class="regular-text" type="%3$s" id="%1$s" name="%1$s" value="%4$s" autocomplete="off" %5$s>
			<p class="description">%6$s</p></td></tr>',
			esc_attr( $name ),
			esc_html( $label ),
			esc_attr( $type ),
			esc_attr( $value ),
			disabled( $is_fixed, true, false ),
			esc_html( $help )
		);
	}

	private static function show_messages(): void {
		$state = Sender::outbox()->state();
		/* translators: 1: number of messages that wait, 2: number of refused messages */
		$counts = sprintf( __( 'Waiting: %1$d. Refused: %2$d.', 'intray' ), $state['waiting'], $state['refused'] );
		printf( '<h2>%s</h2><p>%s</p>', esc_html__( 'Messages that have not arrived', 'intray' ), esc_html( $counts ) );
		if ( $state['waiting'] + $state['refused'] === 0 ) {
			return;
		}
		self::show_button( 'flush', __( 'Send waiting messages now', 'intray' ) );
		self::show_button( 'resend', __( 'Send all refused messages again', 'intray' ) );
		echo '<table class="widefat striped intray-messages"><thead><tr>';
		$columns = array( __( 'Message', 'intray' ), __( 'Received', 'intray' ), __( 'Attempts', 'intray' ), __( 'State', 'intray' ), __( 'Last problem', 'intray' ) );
		foreach ( $columns as $column ) {
			printf( '<th scope="col">%s</th>', esc_html( $column ) );
		}
		echo '</tr></thead><tbody>';
		foreach ( Sender::outbox()->unsent( self::SHOWN ) as $row ) {
			$is_refused = 'refused' === $row['status'];
			printf(
				'<tr><td><code>%s</code></td><td>%s</td><td>%d</td><td>%s</td><td>%s',
				esc_html( $row['source_ref'] ),
				esc_html( wp_date( 'Y-m-d H:i:s', intdiv( (int) $row['created_at'], 1000 ) ) ),
				(int) $row['attempts'],
				$is_refused ? esc_html__( 'refused', 'intray' ) : esc_html__( 'waiting', 'intray' ),
				esc_html( (string) $row['last_error'] )
			);
			if ( $is_refused ) {
				self::show_button( 'resend', __( 'Send again', 'intray' ), (int) $row['id'] );
			}
			echo '</td></tr>';
		}
		echo '</tbody></table>';
	}

	private static function show_button( string $action, string $label, int $id = 0 ): void {
		printf(
			'<form method="post" action="%s" class="intray-%s" style="display:inline-block">
			<input type="hidden" name="action" value="intray_%2$s"><input type="hidden" name="id" value="%3$d">',
			esc_url( admin_url( 'admin-post.php' ) ),
			esc_attr( $action ),
			(int) $id
		);
		wp_nonce_field( "intray_$action" );
		submit_button( $label, 'secondary', 'submit', false );
		echo '</form> ';
	}

	private static function act( string $action ): void {
		check_admin_referer( "intray_$action" );
		if ( ! current_user_can( self::CAPABILITY ) ) {
			wp_die( esc_html__( 'You may not do this.', 'intray' ), '', array( 'response' => 403 ) );
		}
		$id = isset( $_POST['id'] ) ? absint( wp_unslash( $_POST['id'] ) ) : 0;
		set_transient( self::transient(), 'check' === $action ? self::check() : self::send( $action, $id ), MINUTE_IN_SECONDS );
		wp_safe_redirect( self::url() );
		exit;
	}

	/** @return array{string, string} */
	private static function check(): array {
		try {
			$answer = Sender::transport()->ping();
		} catch ( \InvalidArgumentException $unset ) {
			return array( 'error', $unset->getMessage() );
		}
		if ( 200 !== $answer->status || true !== ( $answer->json['ok'] ?? null ) ) {
			return array( 'error', $answer->problem() );
		}
		Sender::retry_now();
		/* translators: %s: the scope of the token */
		return array( 'success', sprintf( __( 'Intray answers, and the token is valid (scope %s).', 'intray' ), (string) ( $answer->json['scope'] ?? '' ) ) );
	}

	/** @return array{string, string} */
	private static function send( string $action, int $id ): array {
		if ( 'resend' === $action ) {
			Sender::outbox()->resend( $id > 0 ? $id : null );
		} else {
			Sender::retry_now();
		}
		$done = Sender::flush( 20 );
		/* translators: 1: number of sent messages, 2: number of refused messages */
		$said = sprintf( __( 'Sent: %1$d. Refused: %2$d.', 'intray' ), $done['sent'], $done['refused'] );
		return null === $done['problem'] ? array( 'success', $said ) : array( 'error', "$said {$done['problem']}" );
	}

	private static function transient(): string {
		return 'intray_said_' . get_current_user_id();
	}
}
