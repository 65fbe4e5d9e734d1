/** How often its owner may die in a turn, or in an undo, with nothing recorded in between, before it is given up. */
export const crashesMax = 5
