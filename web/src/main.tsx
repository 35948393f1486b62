import { effect } from '@preact/signals'
import { render } from 'preact'
import './styles/main.css'
import { FAVICON, Icon } from './components/icon'
import { Frame } from './frame/frame'
import { lent } from './lent'
import { register } from './registry'
import { screens } from './screens'
import { SignIn } from './screens/sign_in'
import { auth } from './state/http'
import { placeAddress } from './state/last_project'
import { route } from './state/route'
import { start, startError } from './state/store'
import './state/theme'

function App() {
    if (auth.value === 'signed-in' && route.value.isPlaced) {
        return <Frame />
    }
    if (auth.value === 'signed-out') {
        return <SignIn />
    }
    return (
        <main class="sign-in" aria-live="polite">
            {startError.value ? (
                <p class="failed">
                    <Icon name="offline" />
                    <span>{startError.value} Retrying every few seconds.</span>
                </p>
            ) : (
                <p class="muted">Opening…</p>
            )}
        </main>
    )
}

// From here and not from index.html: the content security policy has no data: for images.
const icon = document.createElement('link')
icon.rel = 'icon'
icon.href = URL.createObjectURL(new Blob([FAVICON], { type: 'image/svg+xml' }))
document.head.append(icon)

effect(() => {
    if (auth.value === 'signed-in' && !route.value.isPlaced) {
        void placeAddress()
    }
})

Object.assign(globalThis, { lent })
register(screens)
render(<App />, document.getElementById('app')!)
void start()
