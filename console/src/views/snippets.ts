// Code examples that send a message. They contain the address of this server, and the token only while it is shown.

export const SAMPLE_BODY = {
  source_ref: 'example:1',
  channel_ref: 'example.org/contact',
  contact: { name: 'Ada Lovelace', email: 'ada@example.org' },
  message: { type: 'text', text: 'Do you ship to Malta?' },
} as const

export function sendCommand(origin: string, token = '$TOKEN', body = JSON.stringify(SAMPLE_BODY)): string {
  return [
    `curl -sS ${origin}/v1/inbox/events \\`,
    `  -H "Authorization: Bearer ${token}" -H 'Content-Type: application/json' \\`,
    `  --data-raw ${shellQuoted(body)}`,
  ].join('\n')
}

/** For bodies too long for a command line. */
export function sendFileCommand(origin: string, file: string): string {
  return [
    `curl -sS ${origin}/v1/inbox/events \\`,
    `  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\`,
    `  --data-binary @${file}`,
  ].join('\n')
}

export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

export const SNIPPET_NAMES = ['curl', 'PHP', 'JavaScript', 'WordPress'] as const
export type SnippetName = (typeof SNIPPET_NAMES)[number]

export function snippet(name: SnippetName, origin: string, token: string): string {
  switch (name) {
    case 'curl':
      return sendCommand(origin, token)
    case 'PHP':
      return php(origin, token)
    case 'JavaScript':
      return javaScript(origin, token)
    case 'WordPress':
      return wordPress(origin, token)
  }
}

const php = (origin: string, token: string) => `<?php
$request = curl_init('${origin}/v1/inbox/events');
curl_setopt_array($request, [
    CURLOPT_POST => true,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => ['Authorization: Bearer ${token}', 'Content-Type: application/json'],
    CURLOPT_POSTFIELDS => json_encode([
        'source_ref' => 'shop:' . $orderId, // your own id, so that a re-send is stored once
        'channel_ref' => 'example.org/contact',
        'contact' => ['name' => $name, 'email' => $email],
        'message' => ['type' => 'text', 'text' => $text],
    ], JSON_THROW_ON_ERROR),
]);
$answer = json_decode(curl_exec($request) ?: '{}');
if (($answer->ok ?? false) !== true) {
    error_log('intray: ' . ($answer->message ?? 'no answer'));
}`

const javaScript = (origin: string, token: string) => `// On the server only: a token must not reach a browser.
const answer = await fetch('${origin}/v1/inbox/events', {
  method: 'POST',
  headers: { Authorization: 'Bearer ${token}', 'Content-Type': 'application/json' },
  body: JSON.stringify({
    source_ref: \`shop:\${orderId}\`, // your own id, so that a re-send is stored once
    channel_ref: 'example.org/contact',
    contact: { name, email },
    message: { type: 'text', text },
  }),
})
if (!answer.ok) console.error('intray:', await answer.text())`

const wordPress = (
  origin: string,
  token: string,
) => `// In a plugin, or functions.php of the theme. Sends each Contact Form 7 submission.
add_action('wpcf7_mail_sent', function ($form) {
    $data = WPCF7_Submission::get_instance()->get_posted_data();
    wp_remote_post('${origin}/v1/inbox/events', [
        'timeout' => 10,
        'headers' => ['Authorization' => 'Bearer ${token}', 'Content-Type' => 'application/json'],
        'body' => wp_json_encode([
            'source_ref' => 'cf7:' . $form->id() . ':' . wp_generate_uuid4(),
            'channel_ref' => home_url(),
            'contact' => ['name' => $data['your-name'] ?? '', 'email' => $data['your-email'] ?? ''],
            'message' => ['type' => 'text', 'text' => $data['your-message'] ?? ''],
            'meta' => ['form_id' => $form->id()],
        ]),
    ]);
});`
