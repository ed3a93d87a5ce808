// The sign-in page: by name and password; explains how to get a sign-in link.

import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiError, call } from '../api/client.ts'
import { CodeBlock } from '../ui/controls.tsx'

export function SignIn({ notice }: { readonly notice: ApiError | null }) {
  const queryClient = useQueryClient()
  const [trouble, setTrouble] = useState<string | null>(notice?.message ?? null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    setTrouble(null)
    try {
      const body = { name: String(form.get('name')), password: String(form.get('password')) }
      queryClient.setQueryData(['session'], await call('POST /v1/console/session', { body }))
    } catch (error) {
      setTrouble(error instanceof ApiError ? error.message : 'The server cannot be reached. Is it running?')
      setBusy(false)
    }
  }
  return (
    <main className="lonely">
      <h1>Intray</h1>
      <form onSubmit={submit} className="card stack" aria-labelledby="sign-in">
        <h2 id="sign-in">Sign in</h2>
        {trouble && (
          <p role="alert" className="trouble">
            {trouble}
          </p>
        )}
        <label className="field">
          Name
          <input name="name" autoComplete="username" required />
        </label>
        <label className="field">
          Password
          <input name="password" type="password" autoComplete="current-password" required />
        </label>
        <button type="submit" className="button main-button" disabled={isBusy}>
          Sign in
        </button>
      </form>
      <div className="card stack">
        <h2>No password yet?</h2>
        <p>Run this on the machine that runs Intray. It adds an operator and prints a link that signs in once:</p>
        <CodeBlock label="Command that adds an operator" text="./intray operator add ada --role admin" />
        <p>
          Operator already exists? Run <code>./intray operator link NAME</code>.
        </p>
      </div>
    </main>
  )
}
