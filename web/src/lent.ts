/**
 * What the page lends to its screens that are files of their own: they share its state, and carry nothing twice. The build
 * reads these imports; what such a screen imports else is a part of its own file.
 */
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Fragment, jsx, jsxs } from 'preact/jsx-runtime'
import { COMMANDS } from './commands'
import { Ago, Choices, Empty, Facts, Loaded, Loading, Meter, Owner, PageHead, Panel, Progress, Version, When } from './components/basics'
import { Effects } from './components/builder_panels'
import { ChartWithTable } from './components/chart_table'
import { Lineage } from './components/decision_drawer'
import { DecisionRows, LiveControls } from './components/decision_list'
import { ask, openDialog } from './components/dialog'
import { Face, Picture, Shot } from './components/face'
import { Filter, filtered, NothingMatches } from './components/filter'
import { Form, FormDialog, Refusal, useSending } from './components/form'
import { Icon } from './components/icon'
import { Act } from './components/locked'
import { Menu } from './components/menu'
import { Id, Sentence } from './components/noun'
import { decodePortable, isPortable } from './components/portable'
import { ScoreLine } from './components/score_line'
import { Glyph, State, VERDICTS, VerdictWord, VERSION_VERDICTS } from './components/state'
import { Table } from './components/table'
import { TimeChart } from './components/time_chart'
import { toast } from './components/toast'
import { ValueField } from './components/value_field'
import { ago, bytes, clockTime, counted, dayMinute, dayTime, duration, fixed, fullTime, millis, NONE, percent, plainValue, plural, sentence, short, spanOf, spanText, words } from './format'
import { wallKeys } from './screens/cameras'
import { isSilent } from './screens/nodes'
import { filterOf, Filters, Foot, KEYS, ListFailed, NoMatch, useSeen, wantedNow } from './screens/ion_decisions'
import { shutter } from './screens/ion_enrol'
import { passageKeys } from './screens/ion_passages'
import { cameraHref, cameras } from './state/cameras'
import { allocations, clusters, needsYou } from './state/clusters'
import { DecisionList, NO_FILTER } from './state/decisions'
import { accelerators } from './state/devices'
import { usePlan } from './state/draft'
import { bestOf, framesOf, toldOf } from './state/film'
import { whoOf } from './state/finding'
import { ApiError, apiUrl, call, DRAFT, get, getAll, messageOf, request, segment, send } from './state/http'
import { appliedForm, asIonDoc, isPrediction, nameOf } from './state/ion_doc'
import { optionsOf, shellWords, valueOf } from './state/job_form'
import { onKeys } from './state/keys'
import { byClass, FILES_MAX, manifestOf } from './state/manifest'
import { inProject, project } from './state/project'
import { sendBytes } from './state/push'
import { queues } from './state/queues'
import { Resource, useResource } from './state/resource'
import { CHANGE_DATASETS, may, projectsThatMay } from './state/rights'
import { go, href, hrefWith, param, route, setQuery } from './state/route'
import { sha256Of } from './state/sha256'
import { datasets, ions, jobs, nodes, now } from './state/store'
import { connection } from './state/stream'
import { memberQuestion } from './state/versions'
import { kept } from './state/view'
import { readYaml, writeYaml } from './state/yaml'

export const lent = {
    signal, useEffect, useLayoutEffect, useRef, useState, Fragment, jsx, jsxs, Choices, Empty, Facts, Loaded, PageHead, Panel, Progress,
    Picture, Form, Refusal, useSending, Icon, Act, decodePortable, isPortable, State, toast, bytes, counted, fixed, short, shutter,
    ApiError, apiUrl, call, get, getAll, messageOf, segment, send, byClass, FILES_MAX, manifestOf, project, request, sendBytes, useResource,
    CHANGE_DATASETS, may, Ago, Loading, ChartWithTable, Lineage, DecisionRows, LiveControls, ask, openDialog, Shot, Id, Glyph, VERDICTS,
    useMemo, clockTime, dayMinute, dayTime, duration, fullTime, TimeChart, ValueField, Version, When, Sentence, VERSION_VERDICTS, NONE,
    percent, plainValue, words, onKeys, readYaml, writeYaml, millis, ScoreLine, bestOf, framesOf, toldOf, Filters, filterOf, Foot, KEYS,
    ListFailed, NoMatch, useSeen, wantedNow, passageKeys, DecisionList, whoOf, setQuery, memberQuestion, projectsThatMay, go, href,
    hrefWith, param, route, sha256Of, datasets, ions, COMMANDS, Owner, Effects, Face, Filter, filtered, NothingMatches, FormDialog,
    VerdictWord, Table, ago, plural, sentence, spanOf, spanText, wallKeys, cameraHref, cameras, NO_FILTER, usePlan, DRAFT, appliedForm, asIonDoc,
    isPrediction, nameOf, optionsOf, shellWords, valueOf, inProject, Resource, now, connection, kept, Menu, Meter, isSilent, allocations, clusters, needsYou, accelerators, jobs, nodes, queues,
}
