import { readFileSync, statSync } from 'node:fs'

/** The byte of the file `-shm` that whoever writes has locked. It is a part of SQLite's file format. */
const writeLockByte = 120

/** Who is writing at this moment, in words; null where the system doesn't tell. Only Linux does. */
export function holderOf(path: string): string | null {
  const pid = writerOf(path)
  if (pid === null) return null
  return pid === process.pid ? 'another connection of this process' : `process ${pid}`
}

function writerOf(path: string): number | null {
  try {
    const { ino } = statSync(`${path}-shm`)
    for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
      // "7: POSIX  ADVISORY  WRITE 4711 fe:00:2155651 120 120"
      const [, , , kind, pid, file, first, last] = line.trim().split(/\s+/)
      const covers = Number(first) <= writeLockByte && (last === 'EOF' || Number(last) >= writeLockByte)
      if (kind === 'WRITE' && file?.endsWith(`:${ino}`) && covers && Number(pid) > 0) return Number(pid)
    }
  } catch {
    // No such file on this system.
  }
  return null
}
