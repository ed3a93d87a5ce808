<?php
/**
 * Plugin Name:       Intray
 * Description:       Sends form submissions to Intray. Each one is kept in your database until Intray has confirmed it.
 * Version:           0.2.0
 * Requires at least: 6.0
 * Requires PHP:      7.4
 * License:           MIT
 * Text Domain:       intray
 * Domain Path:       /languages
 *
 * The composition of the plugin: loads its parts and ties them to the hooks of WordPress.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

const PLUGIN_FILE = __FILE__;

// The site may use the PHP kit on its own, through Composer.
if ( ! class_exists( 'Intray\\Outbox' ) ) {
	require_once __DIR__ . '/includes/Intray.php';
}
foreach ( array( 'database', 'transport', 'settings', 'sender', 'contact-form-7', 'admin-page', 'health' ) as $part ) {
	require_once __DIR__ . "/includes/$part.php";
}

Sender::start();
ContactForm7::start();
if ( is_admin() ) {
	AdminPage::start();
}
Health::start();
if ( defined( 'WP_CLI' ) && \WP_CLI ) {
	require_once __DIR__ . '/includes/command.php';
	\WP_CLI::add_command( 'intray', Command::class );
}

add_action(
	'init',
	static function (): void {
		load_plugin_textdomain( 'intray', false, basename( __DIR__ ) . '/languages' );
	}
);
