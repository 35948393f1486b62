/**
 * What the page lends to its screens that are files of their own: they share its state, and carry nothing twice. The build
 * reads these imports; what such a screen imports else is a part of its own file.
 */
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Fragment, jsx, jsxs } from 'preact/jsx-runtime'
import { Choices, Empty, Facts, Loaded, PageHead, Panel, Progress } from './components/basics'
import { Picture } from './components/face'
import { Form, Refusal, useSending } from './components/form'
import { Icon } from './components/icon'
import { Act } from './components/locked'
import { decodePortable, isPortable } from './components/portable'
import { State } from './components/state'
import { toast } from './components/toast'
import { bytes, counted, fixed, short } from './format'
import { shutter } from './screens/ion_enrol'
import { ApiError, apiUrl, call, get, getAll, messageOf, segment, send } from './state/http'
import { byClass, FILES_MAX, manifestOf } from './state/manifest'
import { project } from './state/project'
import { sendBytes } from './state/push'
import { useResource } from './state/resource'
import { CHANGE_DATASETS, may, projectsThatMay } from './state/rights'
import { go, href, hrefWith, param, route } from './state/route'
import { sha256Of } from './state/sha256'
import { datasets, ions } from './state/store'

export const lent = {
    signal, useEffect, useLayoutEffect, useRef, useState, Fragment, jsx, jsxs, Choices, Empty, Facts, Loaded, PageHead, Panel, Progress, Picture, Form,
    Refusal, useSending, Icon, Act, decodePortable, isPortable, State, toast, bytes, counted, fixed, short, shutter, ApiError, apiUrl, call,
    get, getAll, messageOf, segment, send, byClass, FILES_MAX, manifestOf, project, sendBytes, useResource, CHANGE_DATASETS, may,
    projectsThatMay, go, href, hrefWith, param, route, sha256Of, datasets, ions,
}
