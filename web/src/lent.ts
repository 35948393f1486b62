/**
 * What the page lends to its screens that are files of their own: they share its state, and carry nothing twice. The build
 * reads these imports; what such a screen imports else is a part of its own file.
 */
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Fragment, jsx, jsxs } from 'preact/jsx-runtime'
import { COMMANDS } from './commands'
import { Ago, Choices, Empty, Facts, Loaded, Owner, PageHead, Panel, Progress, When } from './components/basics'
import { Effects } from './components/builder_panels'
import { ask, openDialog } from './components/dialog'
import { Face, Picture } from './components/face'
import { Filter, filtered, NothingMatches } from './components/filter'
import { Form, FormDialog, Refusal, useSending } from './components/form'
import { Icon } from './components/icon'
import { Act } from './components/locked'
import { decodePortable, isPortable } from './components/portable'
import { Glyph, State, VERDICTS, VerdictWord } from './components/state'
import { Table } from './components/table'
import { toast } from './components/toast'
import { ago, bytes, clockTime, counted, dayMinute, dayTime, duration, fixed, millis, NONE, plainValue, plural, short, spanOf, spanText, words } from './format'
import { wallKeys } from './screens/cameras'
import { shutter } from './screens/ion_enrol'
import { cameraHref, cameras } from './state/cameras'
import { DecisionList, NO_FILTER } from './state/decisions'
import { usePlan } from './state/draft'
import { whoOf } from './state/finding'
import { ApiError, apiUrl, call, DRAFT, get, getAll, messageOf, segment, send } from './state/http'
import { appliedForm, asIonDoc, isPrediction, nameOf } from './state/ion_doc'
import { optionsOf, shellWords, valueOf } from './state/job_form'
import { byClass, FILES_MAX, manifestOf } from './state/manifest'
import { inProject, project } from './state/project'
import { sendBytes } from './state/push'
import { Resource, useResource } from './state/resource'
import { CHANGE_DATASETS, may, projectsThatMay } from './state/rights'
import { go, href, hrefWith, param, route, setQuery } from './state/route'
import { sha256Of } from './state/sha256'
import { datasets, ions, now } from './state/store'
import { connection } from './state/stream'
import { kept } from './state/view'

export const lent = {
    signal, useEffect, useLayoutEffect, useMemo, useRef, useState, Fragment, jsx, jsxs, COMMANDS, Ago, Choices, Empty, Facts, Loaded, Owner, PageHead,
    Panel, Progress, When, Effects, ask, openDialog, Face, Picture, Filter, filtered, NothingMatches, Form, FormDialog, Refusal, useSending, Icon,
    Act, decodePortable, isPortable, Glyph, State, VERDICTS, VerdictWord, Table, toast, ago, bytes, clockTime, counted, dayMinute, dayTime, duration,
    fixed, millis, NONE, plainValue, plural, short, spanOf, spanText, words, wallKeys, shutter, cameraHref, cameras, DecisionList, NO_FILTER, usePlan, whoOf,
    ApiError, apiUrl, call, DRAFT, get, getAll, messageOf, segment, send, appliedForm, asIonDoc, isPrediction, nameOf, optionsOf, shellWords, valueOf,
    byClass, FILES_MAX, manifestOf, inProject, project, sendBytes, Resource, useResource, CHANGE_DATASETS, may, projectsThatMay, go, href, hrefWith,
    param, route, setQuery, sha256Of, datasets, ions, now, connection, kept,
}
