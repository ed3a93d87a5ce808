<?php
/**
 * A contact form: the visitor is thanked once the message is in the outbox, whether Intray is up or not.
 *
 * Constants or environment: INTRAY_URL, INTRAY_TOKEN, INTRAY_OUTBOX (such as sqlite:/var/lib/site/outbox.db). Cron sends what is
 * left, every minute, with the same three: php Intray.php flush
 */

declare(strict_types=1);

require __DIR__ . '/../../php/Intray.php';

/** A field of the form as text; what is no text counts as empty. */
function field(string $name): string
{
    $value = $_POST[$name] ?? '';
    return is_string($value) ? trim($value) : '';
}

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    if (field('text') === '') {
        http_response_code(422);
        exit('Please write a message.');
    }
    $intray = new Intray\Intray();
    $intray->send([
        // The submission's own id, made once: a visitor may say the same thing twice.
        'source_ref' => 'contact:' . bin2hex(random_bytes(16)),
        // One per person. Without a usable address the message stands alone: send() throws for one that is too long.
        'channel_ref' => strtolower((string) filter_var(field('email'), FILTER_VALIDATE_EMAIL)),
        'contact' => ['name' => field('name'), 'email' => field('email')],
        'message' => ['type' => 'text', 'text' => field('text')],
        'meta' => ['fields' => $_POST],
    ]);
    $intray->flushAfterAnswer();
    // A redirect, so that reloading the page does not send the form again.
    header('Location: ?thanks', true, 303);
    exit;
}
?>
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Contact</title>
<?php if (isset($_GET['thanks'])) : ?>
<p>Thank you. We will answer soon.</p>
<?php else : ?>
<form method="post">
  <p><label>Name <input name="name" required maxlength="200"></label></p>
  <p><label>E-mail <input name="email" type="email" required maxlength="200"></label></p>
  <p><label>Message <textarea name="text" required maxlength="10000"></textarea></label></p>
  <p><button>Send</button></p>
</form>
<?php endif; ?>
</html>
