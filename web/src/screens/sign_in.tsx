/** Shown when there is no session: how to get in. */
import { COMMANDS } from '../commands'
import { Command } from '../components/basics'
import { Mark } from '../components/icon'

export function SignIn() {
    return (
        <main class="sign-in" id="main">
            <Mark />
            <h1 tabIndex={-1}>Sign in to Weir</h1>
            <p>Sign-in links are made on the command line, and work once. Type this on the machine that runs Weir and open the link it prints:</p>
            <Command text={COMMANDS.signIn} />
            <p>
                <button type="button" class="button" onClick={() => location.reload()}>
                    I have signed in
                </button>
            </p>
        </main>
    )
}
