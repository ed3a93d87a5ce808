<?php
/**
 * Requests to Intray through WordPress's own HTTP functions, which know the site's proxy and certificates.
 */

declare(strict_types=1);

namespace Intray\WordPress;

use Intray\Answer;
use Intray\Curl;
use Intray\Transport;

defined( 'ABSPATH' ) || exit;

final class HttpTransport implements Transport {

	private const CONNECT_SECONDS  = 5;
	private const REQUEST_SECONDS  = 15;
	private const MAX_ANSWER_BYTES = 65536;

	/** @var string */
	private $url;
	/** @var string */
	private $token;

	public function __construct(
		string $url,
		#[\SensitiveParameter]
		string $token
	) {
		Curl::check( $url, $token );
		$this->url   = untrailingslashit( $url );
		$this->token = $token;
	}

	public function post( string $body ): Answer {
		return $this->request( 'POST', '/v1/inbox/events', $body );
	}

	public function ping(): Answer {
		return $this->request( 'GET', '/api/ping', null );
	}

	/** @return array<string, string> Without the token. */
	public function __debugInfo(): array {
		return array( 'url' => $this->url );
	}

	private function request( string $method, string $path, ?string $body ): Answer {
		$connect_in_time = static function ( $curl ): void {
			// phpcs:ignore WordPress.WP.AlternativeFunctions.curl_curl_setopt -- WordPress has no option for it.
			curl_setopt( $curl, CURLOPT_CONNECTTIMEOUT, self::CONNECT_SECONDS );
		};
		add_action( 'http_api_curl', $connect_in_time );
		$response = wp_remote_request(
			$this->url . $path,
			array(
				'method'              => $method,
				'timeout'             => self::REQUEST_SECONDS,
				// The token goes to this address and to no other.
				'redirection'         => 0,
				'limit_response_size' => self::MAX_ANSWER_BYTES,
				'headers'             => array(
					'Authorization' => "Bearer {$this->token}",
					'Content-Type'  => 'application/json',
				),
				'body'                => $body,
			)
		);
		remove_action( 'http_api_curl', $connect_in_time );
		if ( is_wp_error( $response ) ) {
			return new Answer( 0, '', null, str_replace( $this->token, '[token]', $response->get_error_message() ) );
		}
		$retry_after = wp_remote_retrieve_header( $response, 'retry-after' );
		return new Answer(
			(int) wp_remote_retrieve_response_code( $response ),
			str_replace( $this->token, '[token]', wp_remote_retrieve_body( $response ) ),
			is_string( $retry_after ) ? $retry_after : null
		);
	}
}
