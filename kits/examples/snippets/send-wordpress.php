// 1. Install the plugin kits/wordpress/intray. In wp-config.php, above "That's all, stop editing!":
define( 'INTRAY_URL', 'https://inbox.example.org' );
define( 'INTRAY_TOKEN', 'itr_…' );

// 2. Contact Form 7 needs nothing more. Any other form, where it handles a submission:
do_action( 'intray_send', array(
    'source_ref'  => 'example:wordpress:1', // your own id of the message, so that a re-send is stored once
    'channel_ref' => 'ada@example.org', // one per person or thread
    'contact'     => array( 'name' => 'Ada Lovelace', 'email' => 'ada@example.org' ),
    'message'     => array( 'type' => 'text', 'text' => 'Do you ship to Malta?' ),
) );
