// `recant agent install opencode` puts this plugin in place: it tells `recant hook opencode` what happens, changes nothing, and blocks nothing.
import { spawn } from "node:child_process"

const RECANT = "recant"

function tell(message) {
  return new Promise((done) => {
    try {
      const child = spawn(RECANT, ["hook", "opencode"], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
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

export const recant = async ({ directory }) => {
  const parents = new Map()
  const turns = new Map()
  // A subagent has a session of its own: its steps belong to the turn of the session that a person talks to.
  const where = (id) => {
    let session = id
    while (parents.has(session)) session = parents.get(session)
    return { session, turn: turns.get(session), ...(session === id ? {} : { subagent: id }), cwd: directory }
  }
  return {
    dispose: async () => {
      for (const session of turns.keys()) await tell({ event: "session_end", ...where(session) })
    },
    event: async ({ event }) => {
      const { sessionID, info } = event?.properties ?? {}
      if (event?.type === "session.created" && info?.id) {
        if (info.parentID) parents.set(info.id, info.parentID)
        else await tell({ event: "session_start", ...where(info.id) })
      } else if (event?.type === "session.idle" && sessionID) {
        await tell({ event: parents.has(sessionID) ? "subagent_end" : "turn_end", ...where(sessionID) })
      }
    },
    "chat.message": async (input, output) => {
      const id = input?.sessionID
      if (!parents.has(id)) turns.set(id, output?.message?.id)
      const prompt = output?.parts?.find((part) => part.type === "text" && !part.synthetic)?.text
      const { modelID } = input?.model ?? output?.message?.model ?? {}
      await tell({ event: parents.has(id) ? "subagent_start" : "turn_start", ...where(id), prompt, model: modelID })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      await tell({ event: "tool_before", ...where(sessionID), call: callID, tool, args: output?.args })
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }) => {
      await tell({ event: "tool_after", ...where(sessionID), call: callID, tool, args })
    },
    "shell.env": async ({ sessionID }, output) => {
      const { session } = where(sessionID)
      if (output?.env) Object.assign(output.env, { RECANT_AGENT: "opencode", RECANT_AGENT_SESSION: session })
    },
  }
}
