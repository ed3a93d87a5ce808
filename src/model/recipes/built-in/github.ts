// GitHub: webhooks of repositories, organizations and apps.

import type { BuiltInRecipe } from '../recipe.ts'

const REPOSITORY = '{/repository/full_name}'

export const github: BuiltInRecipe = {
  name: 'github',
  version: '1',
  title: 'GitHub',
  bodies: ['json', 'form'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'hex',
    signature: { in: ['{header:x-hub-signature-256}'], prefix: 'sha256=' },
    signs: ['{body}'],
    secret: 'text',
  },
  sourceRef: ['github:{header:x-github-delivery}'],
  channelRef: [
    `github:${REPOSITORY}#{/issue/number}`,
    `github:${REPOSITORY}#{/pull_request/number}`,
    `github:${REPOSITORY}#{/discussion/number}`,
    `github:${REPOSITORY}`,
    'github:{/organization/login}',
  ],
  batch: [],
  index: {
    contactName: ['{/sender/login}', '{/pusher/name}'],
    contactEmail: ['{/pusher/email}', '{/head_commit/author/email}'],
    // The event's name is in a header, which is not stored.
    messageType: [
      'issue_comment.{/action}{?/comment}{?/issue}',
      'issues.{/action}{?/issue}',
      'pull_request_review.{/action}{?/review}{?/pull_request}',
      'pull_request_review_comment.{/action}{?/comment}{?/pull_request}',
      'pull_request.{/action}{?/pull_request}',
      'discussion_comment.{/action}{?/comment}{?/discussion}',
      'discussion.{/action}{?/discussion}',
      'release.{/action}{?/release}',
      'workflow_run.{/action}{?/workflow_run}',
      'push{?/commits}',
      'ping{?/zen}',
      '{/action}',
    ],
    text: [
      '{/comment/body}',
      '{/review/body}',
      ...['issue', 'pull_request', 'discussion'].flatMap((part) => [
        `{/${part}/title}\n{/${part}/body}`,
        `{/${part}/title}`,
      ]),
      '{/release/name}',
      '{/head_commit/message}',
      '{/zen}',
      '{form:payload}',
    ],
  },
  answer: null,
  guide: {
    secret: { from: 'intray', name: 'Secret' },
    steps: [
      'In the settings of the repository or organization, under Webhooks, add a webhook with the payload URL {url}.',
      'Choose the content type application/json, and paste {secret} as secret.',
    ],
  },
}
