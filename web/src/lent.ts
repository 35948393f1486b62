/**
 * What the page lends to its screens that are files of their own: they share its state, and carry nothing twice. The build
 * reads these imports; what such a screen imports else is a part of its own file.
 */
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Fragment, jsx, jsxs } from 'preact/jsx-runtime'
import { Ago, Choices, Empty, Facts, Loaded, Loading, PageHead, Panel, Progress, Version, When } from './components/basics'
import { ChartWithTable } from './components/chart_table'
import { Lineage } from './components/decision_drawer'
import { DecisionRows, LiveControls } from './components/decision_list'
import { ask, openDialog } from './components/dialog'
import { Picture, Shot } from './components/face'
import { Form, Refusal, useSending } from './components/form'
import { Icon } from './components/icon'
import { Act } from './components/locked'
import { Id, Sentence } from './components/noun'
import { decodePortable, isPortable } from './components/portable'
import { ScoreLine } from './components/score_line'
import { Glyph, State, VERDICTS, VERSION_VERDICTS } from './components/state'
import { TimeChart } from './components/time_chart'
import { toast } from './components/toast'
import { ValueField } from './components/value_field'
import { bytes, clockTime, counted, dayMinute, dayTime, duration, fixed, fullTime, millis, NONE, percent, plainValue, short, words } from './format'
import { Filters, filterOf, Foot, KEYS, ListFailed, NoMatch, useSeen, wantedNow } from './screens/ion_decisions'
import { shutter } from './screens/ion_enrol'
import { passageKeys } from './screens/ion_passages'
import { DecisionList } from './state/decisions'
import { bestOf, framesOf, toldOf } from './state/film'
import { whoOf } from './state/finding'
import { ApiError, apiUrl, call, get, getAll, messageOf, request, segment, send } from './state/http'
import { onKeys } from './state/keys'
import { byClass, FILES_MAX, manifestOf } from './state/manifest'
import { project } from './state/project'
import { sendBytes } from './state/push'
import { useResource } from './state/resource'
import { CHANGE_DATASETS, may, projectsThatMay } from './state/rights'
import { go, href, hrefWith, param, route, setQuery } from './state/route'
import { sha256Of } from './state/sha256'
import { datasets, ions } from './state/store'
import { memberQuestion } from './state/versions'
import { readYaml, writeYaml } from './state/yaml'

export const lent = {
    signal, useEffect, useLayoutEffect, useRef, useState, Fragment, jsx, jsxs, Choices, Empty, Facts, Loaded, PageHead, Panel, Progress, Picture, Form,
    Refusal, useSending, Icon, Act, decodePortable, isPortable, State, toast, bytes, counted, fixed, short, shutter, ApiError, apiUrl, call,
    get, getAll, messageOf, segment, send, byClass, FILES_MAX, manifestOf, project, request, sendBytes, useResource, CHANGE_DATASETS, may,
    Ago, Loading, ChartWithTable, Lineage, DecisionRows, LiveControls, ask, openDialog, Shot, Id, Glyph, VERDICTS, useMemo, clockTime, dayMinute, dayTime, duration, fullTime,
    TimeChart, ValueField, Version, When, Sentence, VERSION_VERDICTS, NONE, percent, plainValue, words, onKeys, readYaml, writeYaml, millis, ScoreLine, bestOf, framesOf, toldOf, Filters, filterOf, Foot, KEYS, ListFailed, NoMatch, useSeen, wantedNow, passageKeys, DecisionList, whoOf, setQuery, memberQuestion,
    projectsThatMay, go, href, hrefWith, param, route, sha256Of, datasets, ions,
}
