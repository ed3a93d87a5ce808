<?php
// Needs kits/php/Intray.php beside this file.
require 'Intray.php';

$intray = new Intray\Intray([
    'url' => 'https://inbox.example.org',
    'token' => 'itr_…',
    'outbox' => 'sqlite:/var/lib/site/outbox.db', // messages wait here until the service has them
]);
$intray->send([
    'source_ref' => 'example:php:1', // your own id of the message, so that a re-send is stored once
    'channel_ref' => 'ada@example.org', // one per person or thread
    'contact' => ['name' => 'Ada Lovelace', 'email' => 'ada@example.org'],
    'message' => ['type' => 'text', 'text' => 'Do you ship to Malta?'],
]);
$intray->flushAfterAnswer(); // on php-fpm and LiteSpeed; elsewhere, and while the service is down, cron sends:
// * * * * * INTRAY_URL=https://inbox.example.org INTRAY_TOKEN=itr_… INTRAY_OUTBOX=sqlite:/var/lib/site/outbox.db php Intray.php flush
