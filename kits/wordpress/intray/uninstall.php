<?php
/**
 * WordPress calls this when the plugin is deleted. Unsent messages stay in their table, unless the administrator ticked
 * "Also delete messages that were not sent".
 */

declare(strict_types=1);

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

( static function (): void {
	$remove = static function (): void {
		global $wpdb;
		$table = "{$wpdb->prefix}intray_outbox";
		// phpcs:disable WordPress.DB -- the table's name comes from WordPress.
		$has_table = $wpdb->get_var( $wpdb->prepare( 'SHOW TABLES LIKE %s', $wpdb->esc_like( $table ) ) ) === $table;
		$is_unsent = $has_table && $wpdb->get_var( "SELECT id FROM $table WHERE status <> 'sent' LIMIT 1" ) !== null;
		if ( $is_unsent && ! get_option( 'intray_delete_unsent' ) ) {
			$wpdb->query( "DELETE FROM $table WHERE status = 'sent'" );
		} else {
			$wpdb->query( "DROP TABLE IF EXISTS $table" );
		}
		// phpcs:enable
		foreach ( array( 'intray_url', 'intray_token', 'intray_delete_unsent', 'intray_schema' ) as $option ) {
			delete_option( $option );
		}
	};
	if ( ! is_multisite() ) {
		$remove();
		return;
	}
	foreach ( get_sites( array( 'fields' => 'ids', 'number' => 0 ) ) as $site ) {
		switch_to_blog( $site );
		$remove();
		restore_current_blog();
	}
} )();
