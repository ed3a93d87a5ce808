<?php
/**
 * Tells the administrator when messages do not arrive: a notice on every page of the admin area, and an entry in Site Health.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

final class Health {

	private const LATE_AFTER_MS = 15 * MINUTE_IN_SECONDS * 1000;

	public static function start(): void {
		add_action( 'admin_notices', array( self::class, 'show_notice' ) );
		add_filter( 'site_status_tests', array( self::class, 'add_test' ) );
	}

	/** The problem in a sentence, and whether messages are late; null if all is well. */
	public static function problem(): ?string {
		try {
			$state = Sender::outbox()->state();
		} catch ( \RuntimeException $unreachable ) {
			return $unreachable->getMessage();
		}
		if ( null !== $state['oldest_at'] && microtime( true ) * 1000 - $state['oldest_at'] > self::LATE_AFTER_MS ) {
			$format = /* translators: 1: number of messages, 2: a time span such as "20 mins" */ _n(
				'%1$d message waits to be sent to Intray, for %2$s. Check the connection.',
				'%1$d messages wait to be sent to Intray, the oldest for %2$s. Check the connection.',
				$state['waiting'],
				'intray'
			);
			return sprintf( $format, $state['waiting'], human_time_diff( intdiv( $state['oldest_at'], 1000 ) ) );
		}
		if ( $state['refused'] > 0 ) {
			$format = /* translators: %d: number of messages */ _n(
				'Intray refused %d message. It is kept: correct the reason, then send it again.',
				'Intray refused %d messages. They are kept: correct the reason, then send them again.',
				$state['refused'],
				'intray'
			);
			return sprintf( $format, $state['refused'] );
		}
		return null;
	}

	public static function show_notice(): void {
		$problem = current_user_can( AdminPage::CAPABILITY ) ? self::problem() : null;
		if ( null !== $problem ) {
			printf(
				'<div class="notice notice-error intray-problem"><p>%s <a href="%s">%s</a></p></div>',
				esc_html( $problem ),
				esc_url( AdminPage::url() ),
				esc_html__( 'Show the messages', 'intray' )
			);
		}
	}

	/**
	 * @param array<string, array<string, mixed>> $tests
	 * @return array<string, array<string, mixed>>
	 */
	public static function add_test( array $tests ): array {
		$tests['direct']['intray'] = array(
			'label' => __( 'Messages to Intray', 'intray' ),
			'test'  => array( self::class, 'test' ),
		);
		return $tests;
	}

	/** @return array<string, mixed> */
	public static function test(): array {
		$problem = self::problem();
		return array(
			'label'       => null === $problem ? __( 'Form messages reach Intray', 'intray' ) : __( 'Form messages do not reach Intray', 'intray' ),
			'status'      => null === $problem ? 'good' : 'critical',
			'badge'       => array(
				'label' => 'Intray',
				'color' => 'blue',
			),
			'description' => '<p>' . esc_html( $problem ?? __( 'No message is late, and none was refused.', 'intray' ) ) . '</p>',
			'actions'     => sprintf( '<p><a href="%s">%s</a></p>', esc_url( AdminPage::url() ), esc_html__( 'Settings of Intray', 'intray' ) ),
			'test'        => 'intray',
		);
	}
}
