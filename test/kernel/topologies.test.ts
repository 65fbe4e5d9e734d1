/** Shapes of cooperation that people build, each in every order. */
import { describe, expect, test } from 'vitest'
import type { Act } from './acts.js'
import { ask, finish, finishes, fork, forks, invoke, passes, replies, reply, seen } from './acts.js'
import { eventsOf, joinsOf, requestsOf, turnsOf } from './outcome.js'
import { everyOrder, playOf, someOrders } from './play.js'

/** Forks, and answers with its own name and what it was answered. */
const leads = (...team: readonly string[]): Act =>
  forks(team, 'all', (join, { agent }) => reply(`${agent.toLowerCase()}(${join.values.join(' ')})`))

describe('a hierarchy', () => {
  test('of two levels gives the results in declared order', () => {
    const play = playOf(['Start->Boss->End', 'Boss<->A|B|C|D'], {
      Boss: forks(['C', 'A', 'D', 'B']),
      A: replies(),
      B: replies(),
      C: replies(),
      D: replies(),
    })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['c', 'a', 'd', 'b'])
      expect(turnsOf(result, 'Boss')).toHaveLength(2)
    })
    expect(explored).toMatchObject({ orders: 24, ends: 1 })
  })

  test('of three levels gives each lead the results of its own team', () => {
    const play = playOf(['Start->Boss->End', 'Boss<->L|R', 'L<->A|B', 'R<->C|D'], {
      Boss: forks(['L', 'R']),
      L: leads('A', 'B'),
      R: leads('D', 'C'),
      A: replies(),
      B: replies(),
      C: replies(),
      D: replies(),
    })
    const explored = everyOrder(play, (result) => expect(result.output).toEqual(['l(a b)', 'r(d c)']))
    expect(explored.orders).toBeGreaterThan(100)
    expect(explored.ends).toBe(1)
  })

  test('of three levels with teams of three does so in random orders too', () => {
    const play = playOf(['Start->Boss->End', 'Boss<->L|M|R', 'L|M|R<->A|B|C'], {
      Boss: forks(['L', 'M', 'R']),
      L: leads('A', 'B', 'C'),
      M: leads('B', 'C', 'A'),
      R: leads('C', 'A', 'B'),
      A: replies(),
      B: replies(),
      C: replies(),
    })
    someOrders(play, 7, 30, (result) => expect(result.output).toEqual(['l(a b c)', 'm(b c a)', 'r(c a b)']))
  })
})

describe('a swarm', () => {
  test('hands one request from agent to agent on one branch, until one of them finishes', () => {
    const hands: Act = ({ agent, request }) => {
      const path = `${request as string}${agent}`
      const next = { A: 'B', B: 'C', C: 'A' }[agent] ?? 'A'
      return path.length === 6 ? finish(path) : invoke(next, path)
    }
    const play = playOf(['Start->A', 'A<->B', 'B<->C', 'C<->A', 'A|B|C->End'], { A: hands, B: hands, C: hands }, { input: '' })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toBe('ABCABC')
      expect(result.turns.map((turn) => `${turn.agent} ${turn.branch}/${turn.turn}`)).toEqual([
        'A r/1',
        'B r/2',
        'C r/3',
        'A r/4',
        'B r/5',
        'C r/6',
      ])
    })
    expect(explored.orders).toBe(1)
  })

  test('of forked branches hands each on by itself, and the last of each answers', () => {
    const hands: Act = ({ agent, request, waiting }) => {
      const path = `${request as string}${agent}`
      return path.length === 3 ? invoke(waiting ?? '', path) : invoke(agent === 'A' ? 'B' : 'A', path)
    }
    const play = playOf(['Start->H->End', 'H<->A|B', 'A<->B'], {
      H: forks([
        { to: 'A', request: '1' },
        { to: 'B', request: '2' },
      ]),
      A: hands,
      B: hands,
    })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['1AB', '2BA'])
      expect(joinsOf(result, 'H')[0]?.slots.map((slot) => [slot.to, slot.by])).toEqual([
        ['A', 'B'],
        ['B', 'A'],
      ])
    })
    expect(explored.orders).toBe(6)
  })
})

describe('a pipeline', () => {
  test('with a fork in one of its stages goes on once that is joined', () => {
    const play = playOf(
      ['Start->In->Work->Out->End', 'Work<->X|Y'],
      {
        In: ({ request }) => invoke('Work', `${request as string}!`),
        Work: (turn) =>
          turn.message.kind === 'join'
            ? invoke('Out', [turn.request, ...seen(turn.message.join)])
            : fork([{ to: 'X', request: turn.request }, 'Y']),
        X: ({ request }) => reply(`x ${request as string}`),
        Y: replies(),
        Out: ({ request }) => finish(request),
      },
      { input: 'go' },
    )
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['go!', 'x go!', 'y'])
      expect(new Set(result.turns.map((turn) => turn.branch))).toEqual(new Set(['r', 'r.0', 'r.1']))
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })
})

describe('a consensus loop', () => {
  test('votes again until the voters agree, each round a fork of its own', () => {
    const votes: Act = ({ agent, request }) => reply((request as number) >= 3 ? 'yes' : agent === 'A' ? 'yes' : 'no')
    const chair: Act = ({ message, turn }) => {
      if (message.kind === 'join' && new Set(message.join.values).size === 1) return finish({ round: turn - 1, vote: message.join.values })
      return fork(['A', 'B', 'C'].map((to) => ({ to, request: turn })))
    }
    const play = playOf(['Start->Chair->End', 'Chair<->A|B|C'], { Chair: chair, A: votes, B: votes, C: votes })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual({ round: 3, vote: ['yes', 'yes', 'yes'] })
      expect(eventsOf(result.journal, 'barrier.fired').map((event) => event.barrier)).toEqual(['r#1', 'r#2', 'r#3', '#'])
      expect(new Set(turnsOf(result, 'A').map((turn) => turn.branch))).toEqual(new Set(['r.0', 'r.3', 'r.6']))
    })
    expect(explored).toMatchObject({ orders: 216, ends: 1 })
  })
})

describe('rendezvous', () => {
  test('in a chain merge twice, and the one answer stands in all slots', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|C', 'A|B->M', 'M|C->N', 'N->H'],
      {
        H: forks(['A', 'B', 'C']),
        A: passes('M'),
        B: passes('M'),
        C: passes('N'),
        M: ({ requests }) => invoke('N', requests.map((request) => request.value).join('+')),
        N: ({ requests }) => reply(requests.map((request) => request.value).join('|')),
      },
      { joins: ['N', 'M'] },
    )
    const explored = everyOrder(play, (result) => {
      expect(requestsOf(result, 'M')).toEqual([['a', 'b']])
      expect(requestsOf(result, 'N')).toEqual([['a+b', 'c']])
      expect(turnsOf(result, 'N')).toHaveLength(1)
      expect(result.output).toEqual(['a+b|c', 'a+b|c', 'a+b|c'])
      const fired = eventsOf(result.journal, 'rendezvous.fired').map(({ node, branch, merged }) => ({ node, branch, merged }))
      expect(fired).toEqual([
        { node: 'M', branch: 'r.0', merged: ['r.1'] },
        { node: 'N', branch: 'r.0', merged: ['r.2'] },
      ])
    })
    expect(explored.orders).toBe(8)
  })

  test('keep the branches of different forks apart', () => {
    const play = playOf(
      ['Start->H->End', 'H<->L|R', 'L|R->A|B', 'A|B->C', 'C->L|R'],
      {
        H: forks(['L', 'R']),
        L: leads('A', 'B'),
        R: leads('A', 'B'),
        A: ({ branch }) => invoke('C', branch),
        B: ({ branch }) => invoke('C', branch),
        C: ({ requests }) => reply(requests.map((request) => request.value).join('+')),
      },
      { joins: ['C'] },
    )
    const explored = everyOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([
        ['r.0.0', 'r.0.1'],
        ['r.1.0', 'r.1.1'],
      ])
      expect(result.output).toEqual(['l(r.0.0+r.0.1 r.0.0+r.0.1)', 'r(r.1.0+r.1.1 r.1.0+r.1.1)'])
    })
    expect(explored.ends).toBe(1)
  })

  test('mixed with forks: the merged branch forks on its own, and its answer counts for those it stands for', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|D', 'A|B->C', 'C<->X|Y', 'C|D->H'],
      {
        H: forks(['A', 'B', 'D']),
        A: passes('C'),
        B: passes('C'),
        D: replies(),
        C: forks(['X', 'Y'], 'all', (join, { requests }) => reply([...requests.map((request) => request.value), ...join.values].join(' '))),
        X: replies(),
        Y: replies(),
      },
      { joins: ['C'] },
    )
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['a b x y', 'a b x y', 'd'])
      expect(joinsOf(result, 'H')[0]?.slots.map((slot) => slot.by)).toEqual(['C', 'C', 'D'])
    })
    expect(explored.ends).toBe(1)
  })

  test('wait for a branch that waits for a person', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B', 'A|B->C', 'B->User', 'C->H'],
      {
        H: forks(['A', 'B']),
        A: passes('C'),
        B: ({ message }) => (message.kind === 'answer' ? invoke('C', message.value) : ask('which?')),
        C: ({ requests }) => reply(requests.map((request) => request.value).join('+')),
      },
      { joins: ['C'], answers: () => ['this'] },
    )
    everyOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a', 'this']])
      expect(result.output).toEqual(['a+this', 'a+this'])
    })
  })

  test('at the root: branches of several Start edges meet and finish once', () => {
    const play = playOf(
      ['Start->A|B', 'A|B->C->End'],
      { A: passes('C'), B: passes('C'), C: ({ requests }) => finish(requests.map((request) => request.value)) },
      { joins: ['C'] },
    )
    const explored = everyOrder(play, (result) => expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'b'] }))
    expect(explored.ends).toBe(1)
  })
})

describe('a notification', () => {
  test('by invoke starts a branch that nobody waits for, and the caller goes on at once', () => {
    const play = playOf(['Start->H->End', 'H~>N', 'H<->A', 'N->End'], {
      H: ({ message, turn }) => {
        if (turn === 1) return invoke('N', 'news')
        if (turn === 2) return fork(['A'])
        return finish(message.kind === 'join' ? seen(message.join) : null)
      },
      A: replies(),
      N: finishes(),
    })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['a'])
      expect(turnsOf(result, 'N')).toMatchObject([{ branch: 'r.0', message: { kind: 'request', from: 'H', value: 'news' } }])
      expect(joinsOf(result, 'H')[0]).toEqual({
        ok: true,
        slots: [{ index: 0, to: 'N', request: 'news', status: 'arrived', by: 'N', value: undefined }],
        values: [undefined],
        extra: [],
      })
      expect(eventsOf(result.journal, 'run.succeeded')).toHaveLength(1)
    })
    expect(explored.orders).toBe(4)
  })

  test('inside a fork arrives at once, by its target, with no value, and its branch outlives the fork', () => {
    const play = playOf(['Start->H->End', 'H~>N', 'H<->A', 'N->End'], {
      H: forks(['N', 'A', 'N'], 'all', (join) => finish(join.slots.map(({ status, by, value }) => [status, by, value ?? null]))),
      A: replies(),
      N: finishes('nothing'),
    })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual([
        ['arrived', 'N', null],
        ['arrived', 'A', 'a'],
        ['arrived', 'N', null],
      ])
      expect(turnsOf(result, 'N').map((turn) => turn.branch)).toEqual(['r.0', 'r.2'])
    })
    expect(explored.orders).toBe(12)
  })

  test('is not in the scope of a fork that is cancelled: it goes on', () => {
    const play = playOf(['Start->H->End', 'H<->A|B', 'B~>N', 'N->End'], {
      H: forks(['A', 'B'], 'any'),
      A: replies(),
      B: ({ message }) => (message.kind === 'join' ? { hangs: true } : invoke('N')),
      N: finishes(),
    })
    const notified = new Set<boolean>()
    everyOrder(play, (result) => {
      expect(result.output).toEqual(['a', 'cancelled'])
      const opened = eventsOf(result.journal, 'barrier.opened').some((event) => event.kind === 'detached')
      const done = eventsOf(result.journal, 'turn.completed').some((event) => event.agent === 'N')
      expect(done).toBe(opened)
      notified.add(opened)
    })
    expect(notified).toEqual(new Set([true, false]))
  })

  test('that fails, fails nothing else', () => {
    const play = playOf(['Start->H->End', 'H~>N', 'N->End'], {
      H: ({ message }) => (message.kind === 'join' ? finish('h') : invoke('N')),
      N: () => ({ throw: 'n broke' }),
    })
    everyOrder(play, (result) => {
      expect(result).toMatchObject({ status: 'succeeded', output: 'h' })
      expect(eventsOf(result.journal, 'branch.settled')).toContainEqual(
        expect.objectContaining({
          branch: 'r.0',
          status: 'failed',
          error: expect.objectContaining({ code: 'AGENT_FAILED', message: 'n broke' }),
        }),
      )
    })
  })

  test('has no enclosing fork: the notified branch can not reach those that wait around its caller', () => {
    const play = playOf(['Start->H->End', 'H<->A', 'A~>N', 'N->H|End'], {
      H: ({ message, branch }) => {
        if (branch !== 'r') return finish('moved here')
        return message.kind === 'join' ? finish(seen(message.join)) : fork(['A'])
      },
      A: ({ message }) => (message.kind === 'join' ? reply('a') : invoke('N')),
      N: passes('H', 'n'),
    })
    everyOrder(play, (result) => {
      expect(result.output).toEqual(['a'])
      expect(turnsOf(result, 'H').filter((turn) => turn.branch !== 'r')).toMatchObject([
        { branch: 'r.0.0', turn: 2, message: { kind: 'request', from: 'N' } },
      ])
    })
  })
})

describe('several finishes', () => {
  const flows = ['Start->H->End', 'H<->A|B', 'A|B->End']
  const agents = { H: forks(['A', 'B']), A: finishes(), B: finishes() }

  test('are an error where one is expected', () => {
    everyOrder(playOf(flows, agents), (result) => {
      expect(result.error).toMatchObject({ code: 'SEVERAL_FINISHES', data: { branches: ['r.0', 'r.1'] } })
      expect(result.error?.message).toMatch(/A on r\.0, B on r\.1/)
    })
  })

  test("are a list, by branch id, with result 'list'", () => {
    const explored = everyOrder(playOf(flows, agents, { result: 'list' }), (result) => {
      expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'b'] })
    })
    expect(explored.ends).toBe(1)
  })

  test('are given to a result function, with who and where', () => {
    const play = playOf(flows, agents, { result: (all) => all.map(({ by, branch, output }) => `${by} ${branch} ${output as string}`) })
    everyOrder(play, (result) => expect(result.output).toEqual(['A r.0 a', 'B r.1 b']))
  })

  test('a result function that throws, or gives what is no JSON, fails the run', () => {
    const throws = playOf(flows, agents, {
      result: () => {
        throw new Error('no idea')
      },
    })
    everyOrder(throws, (result) =>
      expect(result.error).toMatchObject({ code: 'RESULT_FAILED', message: expect.stringContaining('no idea') }),
    )
    everyOrder(playOf(flows, agents, { result: () => 1n }), (result) => expect(result.error).toMatchObject({ code: 'RESULT_FAILED' }))
  })

  test('one finish beside a reply: H goes on, and its own finish is the second', () => {
    const play = playOf(flows, { ...agents, B: replies() }, { result: 'list' })
    everyOrder(play, (result) => {
      expect(joinsOf(result, 'H').map(seen)).toEqual([['escaped', 'b']])
      expect(result.output).toEqual([['escaped', 'b'], 'a'])
    })
  })
})

describe('loops', () => {
  test('are bounded by the turns of one branch: LIMIT_TURNS, and exactly so many turns', () => {
    const play = playOf(['Start->A', 'A<->B', 'A->End'], { A: passes('B'), B: passes('A') }, { limits: { maxTurnsPerBranch: 7 } })
    everyOrder(play, (result) => {
      expect(result.error).toMatchObject({ code: 'LIMIT_TURNS', at: {} })
      expect(result.error?.message).toContain('maxTurnsPerBranch')
      expect(result.turns).toHaveLength(7)
    })
  })

  test('on two branches count apart', () => {
    const loops =
      (last: number): Act =>
      ({ turn, agent }) =>
        turn === last ? invoke('H', turn) : invoke(agent === 'A' ? 'B' : 'A')
    const play = playOf(
      ['Start->H->End', 'H<->A|B', 'A<->B'],
      { H: forks(['A', 'B']), A: loops(3), B: loops(3) },
      { limits: { maxTurnsPerBranch: 3 } },
    )
    everyOrder(play, (result) => expect(result.output).toEqual([3, 3]))
  })
})

describe('forks at one agent', () => {
  test('at the same time each get their own replies', () => {
    const play = playOf(['Start->H->End', 'H<->L', 'L<->A|B'], {
      H: forks([
        { to: 'L', request: 1 },
        { to: 'L', request: 2 },
      ]),
      L: (turn) =>
        turn.message.kind === 'join'
          ? reply({ of: turn.request, got: seen(turn.message.join) })
          : fork(['A', 'B'].map((to) => ({ to, request: turn.request }))),
      A: ({ request }) => reply(`a${request as number}`),
      B: ({ request }) => reply(`b${request as number}`),
    })
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual([
        { of: 1, got: ['a1', 'b1'] },
        { of: 2, got: ['a2', 'b2'] },
      ])
    })
    expect(explored).toMatchObject({ ends: 1 })
  })

  test('of the same agent twice give one slot for each call, in the order of the calls', () => {
    const play = playOf(['Start->H->End', 'H<->A'], {
      H: forks(['x', 'y', 'z'].map((request) => ({ to: 'A', request }))),
      A: ({ request }) => reply(`got ${request as string}`),
    })
    const explored = everyOrder(play, (result) => expect(result.output).toEqual(['got x', 'got y', 'got z']))
    expect(explored).toMatchObject({ orders: 6, ends: 1 })
  })

  test('of none fire at once', () => {
    const play = playOf(['Start->H->End', 'H<->A'], { H: forks([], 'all', (join) => finish(join)), A: replies() })
    everyOrder(play, (result) => {
      expect(result.output).toEqual({ ok: true, slots: [], values: [], extra: [] })
      expect(turnsOf(result, 'H')).toHaveLength(2)
    })
  })

  test('of none under settled and ratio are legal, under any, majority and quorum they are rejected', () => {
    for (const join of ['settled', { ratio: 0.5 }] as const) {
      const play = playOf(['Start->H->End', 'H<->A'], { H: forks([], join), A: replies() })
      everyOrder(play, (result) => expect(result.output).toEqual([]))
    }
    for (const join of ['any', 'majority', { quorum: 1 }] as const) {
      const play = playOf(['Start->H->End', 'H<->A'], { H: forks([], join), A: replies() })
      everyOrder(play, (result) => expect(result.error).toMatchObject({ code: 'REJECTED', at: { agent: 'H', branch: 'r', turn: 1 } }))
    }
  })
})

describe('an escape', () => {
  const extra = (play: ReturnType<typeof playOf>, visit: (extra: unknown, slots: unknown) => void): void => {
    everyOrder(play, (result) => {
      const [join] = joinsOf(result, 'H')
      visit(join?.extra, join === undefined ? [] : seen(join))
    })
  }

  test('over one level is beside the join of the outer fork, and the inner agent has its turn if it got an answer', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W|V', 'W->H'], {
      H: forks(['M']),
      M: forks(['W', 'V'], 'all', (join) => reply(seen(join))),
      W: passes('H'),
      V: replies(),
    })
    extra(play, (contributed, slots) => {
      expect(contributed).toEqual([{ by: 'W', value: 'w' }])
      expect(slots).toEqual([['escaped', 'v']])
    })
  })

  test('over two levels leaves nothing at the one between, and those between have no turn', () => {
    const play = playOf(['Start->H->End', 'H<->L', 'L<->M', 'M<->W', 'W->H'], {
      H: forks(['L']),
      L: forks(['M'], 'all', () => reply('l')),
      M: forks(['W', 'W'], 'all', () => reply('m')),
      W: ({ branch }) => invoke('H', branch),
    })
    everyOrder(play, (result) => {
      expect(joinsOf(result, 'H')).toMatchObject([
        {
          ok: true,
          slots: [{ status: 'escaped', by: null }],
          extra: [
            { by: 'W', value: 'r.0.0.0' },
            { by: 'W', value: 'r.0.0.1' },
          ],
        },
      ])
      expect(turnsOf(result, 'L')).toHaveLength(1)
      expect(turnsOf(result, 'M')).toHaveLength(1)
    })
  })

  test('goes to the nearest enclosing fork at which that agent waits', () => {
    const play = playOf(['Start->H->End', 'H<->M|X', 'X<->W', 'W->H'], {
      H: ({ message, branch }) => {
        if (message.kind !== 'join') return branch === 'r' ? fork(['M']) : fork(['X'])
        const got = [...seen(message.join), ...message.join.extra.map((item) => item.value)]
        return branch === 'r' ? finish(got) : reply(got)
      },
      M: forks(['H'], 'all', (join) => reply(['m', ...seen(join)])),
      X: forks(['W'], 'all', () => reply('x')),
      W: passes('H'),
    })
    everyOrder(play, (result) => expect(result.output).toEqual([['m', ['escaped', 'w']]]))
  })

  test('of a merged branch contributes once, for all of its slots', () => {
    const play = playOf(
      ['Start->H->End', 'H<->M', 'M->A|B', 'A|B->C', 'C->H'],
      { H: forks(['M']), M: forks(['A', 'B'], 'all', () => ({ hangs: true })), A: passes('C'), B: passes('C'), C: passes('H') },
      { joins: ['C'] },
    )
    extra(play, (contributed, slots) => {
      expect(contributed).toEqual([{ by: 'C', value: 'c' }])
      expect(slots).toEqual(['escaped'])
    })
  })

  test('of a branch that a settled join waits for still gives its agent a turn', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W', 'W->H'], {
      H: forks(['M']),
      M: forks(['W'], 'settled', (join) => reply(seen(join))),
      W: passes('H'),
    })
    extra(play, (contributed, slots) => {
      expect(contributed).toEqual([{ by: 'W', value: 'w' }])
      expect(slots).toEqual([['escaped']])
    })
  })

  test('by finish leaves all forks, and the agents that waited there have no turn', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W', 'W->End'], {
      H: forks(['M']),
      M: forks(['W'], 'all', () => reply('m')),
      W: finishes('done'),
    })
    everyOrder(play, (result) => {
      expect(result.output).toBe('done')
      expect(result.turns.map((turn) => turn.agent)).toEqual(['H', 'M', 'W'])
    })
  })

  test('below a join that fails is dropped with it', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W|V', 'W->H'], {
      H: forks(['M'], 'settled', (join) => finish({ slots: seen(join), extra: join.extra })),
      M: forks(['W', 'V'], 'all', () => reply('m')),
      W: passes('H'),
      V: () => ({ throw: 'v broke' }),
    })
    everyOrder(play, (result) => expect(result.output).toEqual({ slots: ['failed'], extra: [] }))
  })

  test('that a failing agent carried is dropped', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W|V', 'W->H'], {
      H: forks(['M'], 'settled', (join) => finish({ slots: seen(join), extra: join.extra })),
      M: forks(['W', 'V'], 'all', () => ({ throw: 'm broke' })),
      W: passes('H'),
      V: replies(),
    })
    everyOrder(play, (result) => expect(result.output).toEqual({ slots: ['failed'], extra: [] }))
  })
})

describe('several Start edges', () => {
  test('give each first turn the input, on branches of their own, and the outputs in declared order', () => {
    const play = playOf(
      ['Start->B|A', 'A|B->End'],
      { A: ({ request }) => finish(`a ${request as string}`), B: ({ request }) => finish(`b ${request as string}`) },
      {
        input: 'hi',
        result: 'list',
      },
    )
    const explored = everyOrder(play, (result) => {
      expect(result.output).toEqual(['b hi', 'a hi'])
      expect(turnsOf(result, 'B')).toMatchObject([{ branch: 'r.0', message: { kind: 'request', from: 'Start', value: 'hi' } }])
      expect(turnsOf(result, 'A')).toMatchObject([{ branch: 'r.1' }])
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })

  test('fail with the failure of the lowest slot itself, once all have settled', () => {
    const play = playOf(['Start->A|B|C', 'A|B|C->End'], { A: finishes(), B: () => ({ throw: 'b broke' }), C: () => ({ throw: 'c broke' }) })
    everyOrder(play, (result) => {
      expect(result.error).toMatchObject({ code: 'AGENT_FAILED', message: 'b broke', at: { agent: 'B', branch: 'r.1', turn: 1 } })
      expect(result.error).not.toHaveProperty('cause')
      expect(eventsOf(result.journal, 'turn.completed')).toHaveLength(1)
      expect(eventsOf(result.journal, 'turn.failed')).toHaveLength(2)
    })
  })
})
