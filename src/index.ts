export { type Act, type ActFn, type Agent, agent, type Handlers, type Options } from './define/agent.js'
export type { Definition, Graph, Topology } from './define/definition.js'
export type { Edges, Pattern } from './define/edges.js'
export { type GraphBuilder, graph, type StepContext, type StepNode } from './define/graph.js'
export type { GuardedAnswer, Guardrail, Tripped } from './define/guardrail.js'
export type { LanguageModel } from './define/language-model.js'
export type { Limits } from './define/limits.js'
export { patterns, type Tree } from './define/patterns.js'
export { type Provided, type Resource, resource } from './define/resource.js'
export type { Retry } from './define/retry.js'
export type { Rule } from './define/rules.js'
export type { Schema } from './define/schema.js'
export type { Tags } from './define/tags.js'
export { type Tool, tool } from './define/tool.js'
export type { Toolbox } from './define/toolbox.js'
export { type Merge, topology } from './define/topology.js'
export type { AnySeat, Call, Carry, Denied, JoinResult, MemoryEntry, Message, Role, Seat, Turn } from './define/turn.js'
export { type Code, TuttiError } from './define/tutti-error.js'
export type { ActivityContext, Done, Work } from './define/work.js'
export type { Ask } from './inspect/ask.js'
export type { Delta, Events, JournalEvent } from './inspect/events.js'
export type { Store } from './engine/store.js'
export type {
  AgentChange,
  AgentCommand,
  AgentControl,
  AgentRecord,
  AgentStatus,
  Clock,
  Command,
  InputOf,
  LogEntry,
  OpenOptions,
  OutputOf,
  Retention,
  Run,
  RunChange,
  RunResult,
  RunSummary,
  RuntimeState,
  StartOptions,
  Tutti,
} from './engine/tutti.js'
export { type Diagram, type DiagramEdge, type DiagramNode, diagramOf } from './inspect/diagram.js'
export { diagramMermaid } from './inspect/diagram-mermaid.js'
export { diagramSvg } from './inspect/diagram-svg.js'
export { diagramText } from './inspect/diagram-text.js'
export type { Report, Rollback, RunStatus, UsageTotal } from './inspect/report-data.js'
export { reportMarkdown, reportText } from './inspect/report-text.js'
export {
  type Bar,
  type BarKind,
  type Lane,
  type LaneOutcome,
  type Moment,
  type Span,
  type Timeline,
  timelineOf,
} from './inspect/timeline.js'
export { timelineHtml } from './inspect/timeline-html.js'
export { timelineSvg } from './inspect/timeline-svg.js'
export { timelineText } from './inspect/timeline-text.js'
export type { Action, AskAction, Fail, Finish, Fork, Invoke, Reply } from './kernel/action.js'
export type { Failure, FailureCode } from './kernel/failure.js'
export type { Join, JoinData, Policy, Slot } from './kernel/join.js'
export type { Problem } from './kernel/problem.js'
export type { Edge } from './kernel/shape.js'
export { mcp } from './models/mcp.js'
export type { McpOptions, McpServer } from './models/mcp-connection.js'
export type { ModelFactory, ModelSource } from './models/model-factory.js'
export { open } from './open.js'
