<?php
/**
 * Submissions of Contact Form 7. The hook comes before the mail: if the mailer throws, no later hook is called.
 */

declare(strict_types=1);

namespace Intray\WordPress;

defined( 'ABSPATH' ) || exit;

final class ContactForm7 {

	/** Before other plugins, which may fail. */
	private const PRIORITY = 1;

	public static function start(): void {
		add_action( 'wpcf7_before_send_mail', array( self::class, 'capture' ), self::PRIORITY, 3 );
	}

	/**
	 * @param \WPCF7_ContactForm $form
	 * @param bool               $abort
	 * @param \WPCF7_Submission  $submission
	 */
	public static function capture( $form, $abort, $submission ): void {
		if ( $submission->get_meta( 'do_not_store' ) || $form->in_demo_mode() ) {
			return;
		}
		/** Filters the message before it is kept. An empty result keeps none. */
		$message = apply_filters( 'intray_cf7_message', self::message( $form, $submission ), $form, $submission );
		if ( is_array( $message ) && array() !== $message ) {
			Sender::send( $message );
		}
	}

	/** @return array<string, mixed> */
	private static function message( \WPCF7_ContactForm $form, \WPCF7_Submission $submission ): array {
		$files  = array();
		$fields = array_diff_key( $submission->get_posted_data(), array_flip( self::not_stored( $form ) ) );
		foreach ( $submission->uploaded_files() as $name => $paths ) {
			// CF7 puts a hash there, and deletes the file at the end of the request.
			$files[ $name ] = array_map( 'wp_basename', (array) $paths );
			unset( $fields[ $name ] );
		}
		$email = self::first( $form, $fields, 'email' );
		$page  = (int) $submission->get_meta( 'container_post_id' );
		return array(
			'source_ref'  => "cf7:{$form->id()}:" . wp_generate_uuid4(),
			'channel_ref' => '' === $email ? null : strtolower( $email ),
			'contact'     => array_filter(
				array(
					'name'  => self::text( $fields['your-name'] ?? $fields['name'] ?? '' ),
					'email' => $email,
					'phone' => self::first( $form, $fields, 'tel' ),
				),
				'strlen'
			),
			'message'     => array(
				'type' => 'text',
				'text' => self::first( $form, $fields, 'textarea' ) ?: self::lines( $fields ),
			),
			'fields'      => (object) $fields,
			'files'       => (object) $files,
			'meta'        => array(
				'form_id'    => $form->id(),
				'form_title' => $form->title(),
				// Without a Referer, CF7 has the address of its own REST route.
				'page_url'   => $page > 0 ? (string) get_permalink( $page ) : (string) $submission->get_meta( 'url' ),
				'site_url'   => home_url(),
			),
		);
	}

	/** @return string[] Names of fields that forms want nobody to keep. */
	private static function not_stored( \WPCF7_ContactForm $form ): array {
		$tags = $form->scan_form_tags( array( 'feature' => 'do-not-store' ) );
		return array_merge( array( 'g-recaptcha-response' ), wp_list_pluck( $tags, 'name' ) );
	}

	/** The first value of a field of this type. */
	private static function first( \WPCF7_ContactForm $form, array $fields, string $type ): string {
		foreach ( $form->scan_form_tags( array( 'basetype' => $type ) ) as $tag ) {
			$text = self::text( $fields[ $tag->name ] ?? '' );
			if ( '' !== $text ) {
				return $text;
			}
		}
		return '';
	}

	/** A form without a text area: all its fields. */
	private static function lines( array $fields ): string {
		$lines = array();
		foreach ( $fields as $name => $value ) {
			$lines[] = "$name: " . self::text( $value );
		}
		return implode( "\n", $lines );
	}

	/** @param mixed $value */
	private static function text( $value ): string {
		return trim( implode( ', ', array_filter( (array) $value, 'is_scalar' ) ) );
	}
}
