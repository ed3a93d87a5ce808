<?php
/**
 * The settings: constants of wp-config.php first, stored options second.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

final class Settings {

	public const URL           = 'intray_url';
	public const TOKEN         = 'intray_token';
	public const DELETE_UNSENT = 'intray_delete_unsent';
	public const SCHEMA        = 'intray_schema';

	public static function url(): string {
		return self::constant( 'INTRAY_URL' ) ?? trim( (string) get_option( self::URL, '' ) );
	}

	/** Stored in an array, because the page of all options shows plain text. */
	public static function token(): string {
		$stored = get_option( self::TOKEN );
		return self::constant( 'INTRAY_TOKEN' ) ?? ( is_array( $stored ) ? (string) ( $stored['token'] ?? '' ) : '' );
	}

	public static function is_constant( string $name ): bool {
		return null !== self::constant( $name );
	}

	public static function register(): void {
		register_setting( 'intray', self::URL, array( 'sanitize_callback' => array( self::class, 'sanitize_url' ) ) );
		register_setting( 'intray', self::TOKEN, array( 'sanitize_callback' => array( self::class, 'sanitize_token' ) ) );
		register_setting( 'intray', self::DELETE_UNSENT, array( 'sanitize_callback' => 'rest_sanitize_boolean' ) );
		if ( false === get_option( self::TOKEN ) ) {
			add_option( self::TOKEN, array(), '', 'no' );
		}
	}

	/** @param mixed $value */
	public static function sanitize_url( $value ): string {
		return untrailingslashit( esc_url_raw( trim( (string) $value ), array( 'https', 'http' ) ) );
	}

	/**
	 * An empty field keeps the stored token.
	 *
	 * @param mixed $value
	 * @return array<string, string>
	 */
	public static function sanitize_token( $value ): array {
		$token = is_array( $value ) ? (string) ( $value['token'] ?? '' ) : trim( (string) $value );
		if ( '' === $token ) {
			$stored = get_option( self::TOKEN );
			return is_array( $stored ) ? $stored : array();
		}
		return array( 'token' => $token );
	}

	private static function constant( string $name ): ?string {
		return defined( $name ) && '' !== constant( $name ) ? trim( (string) constant( $name ) ) : null;
	}
}
