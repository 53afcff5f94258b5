// `recant agent install pi` puts this extension in place: it tells `recant hook pi` what happens, changes nothing, and blocks nothing.
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"

const RECANT = "recant"

function tell(message: object): Promise<void> {
  return new Promise((done) => {
    try {
      const child = spawn(RECANT, ["hook", "pi"], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
      const late = setTimeout(() => (child.unref(), done()), 6000)
      const over = () => (clearTimeout(late), done())
      child.on("error", over)
      child.on("exit", over)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(message))
    } catch {
      done()
    }
  })
}

export default function (pi: any) {
  let turn: string | undefined
  const on = (name: string, event: string, more: (given: any, context: any) => object = () => ({})) =>
    pi.on(name, async (given: any, context: any) => {
      try {
        const rest = more(given, context)
        await tell({ event, session: context?.sessionManager?.getSessionId?.(), turn, cwd: context?.cwd, ...rest })
      } catch {}
    })
  on("session_start", "session_start", (given) => ({ source: given?.reason }))
  on("before_agent_start", "turn_start", (given, context) => {
    turn = randomUUID()
    // Commands of the `bash` tool inherit both.
    Object.assign(process.env, { RECANT_AGENT: "pi", RECANT_AGENT_SESSION: context?.sessionManager?.getSessionId?.() ?? "" })
    return { turn, prompt: given?.prompt, model: context?.model?.id }
  })
  on("tool_call", "tool_before", (given) => ({ call: given?.toolCallId, tool: given?.toolName, args: given?.input }))
  on("tool_result", "tool_after", (given) => ({
    call: given?.toolCallId,
    tool: given?.toolName,
    args: given?.input,
    error: given?.isError === true,
  }))
  on("agent_end", "turn_end")
  on("session_shutdown", "session_end", (given) => ({ reason: given?.reason }))
}
