// A module that counts in a variable of its own: the second run of it comes out differently.
import { topology } from 'tutti'

let runs = 0

export default topology({
  name: 'leaking',
  flows: ['Start -> A -> End'],
  agents: { A: { act: (turn) => turn.finish(++runs) } },
})
