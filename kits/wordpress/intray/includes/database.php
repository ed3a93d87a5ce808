<?php
/**
 * The outbox on the site's own database connection, through prepared statements of $wpdb.
 */

declare(strict_types=1);

namespace Intray\WordPress;

use Intray\Database;

defined( 'ABSPATH' ) || exit;

final class WpdbDatabase implements Database {

	public function dialect(): string {
		return 'mysql';
	}

	public function select( string $sql, array $values ): array {
		return $this->run(
			static function ( \wpdb $wpdb, string $prepared ) {
				return $wpdb->get_results( $prepared, ARRAY_A );
			},
			$sql,
			$values
		);
	}

	public function change( string $sql, array $values = array() ): int {
		return (int) $this->run(
			static function ( \wpdb $wpdb, string $prepared ) {
				return $wpdb->query( $prepared );
			},
			$sql,
			$values
		);
	}

	/**
	 * @param callable              $call   Takes $wpdb and the prepared statement.
	 * @param array<int|string|null> $values
	 * @return mixed
	 */
	private function run( callable $call, string $sql, array $values ) {
		global $wpdb;
		$prepared = self::prepare( $wpdb, $sql, $values );
		// The message of a failure goes to the caller, not into a visitor's page.
		$suppressed        = $wpdb->suppress_errors( true );
		$wpdb->last_error = '';
		$result            = $call( $wpdb, $prepared );
		$wpdb->suppress_errors( $suppressed );
		if ( false === $result || null === $result || '' !== $wpdb->last_error ) {
			throw new \RuntimeException( "The outbox cannot be reached: {$wpdb->last_error}" );
		}
		return $result;
	}

	/** Placeholders of $wpdb have types, and none of them is NULL. */
	private static function prepare( \wpdb $wpdb, string $sql, array $values ): string {
		$given  = array();
		$format = preg_replace_callback(
			'/\?/',
			static function () use ( &$values, &$given ): string {
				$value = array_shift( $values );
				if ( null === $value ) {
					return 'NULL';
				}
				$given[] = $value;
				return is_int( $value ) ? '%d' : '%s';
			},
			$sql
		);
		// phpcs:ignore WordPress.DB.PreparedSQL.NotPrepared -- $format has placeholders only.
		return $given ? $wpdb->prepare( $format, $given ) : $format;
	}
}
