<?php
/**
 * `wp intray`: for a cron job of the system, and for administrators.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

final class Command {

	/**
	 * Sends waiting messages to Intray.
	 *
	 * @param string[]              $arguments
	 * @param array<string, string> $options
	 */
	public function flush( array $arguments, array $options ): void {
		$done = Sender::flush();
		$line = sprintf( 'Sent %d, refused %d, waiting %d.', $done['sent'], $done['refused'], Sender::outbox()->state()['waiting'] );
		if ( null === $done['problem'] ) {
			\WP_CLI::success( $line );
		} else {
			\WP_CLI::error( "$line {$done['problem']}" );
		}
	}
}
