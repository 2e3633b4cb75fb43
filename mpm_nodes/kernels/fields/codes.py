"""What an operation of a field's program does, by its code. Kernels see the numbers, and messages the names.

| code | writes |
|---|---|
| CONSTANT | its three numbers |
| PLACE | where it is |
| MOVED | R^T (a - t) / s: a in the axes of something that is turned, moved and scaled |
| NOISE, CURL | noise of a at the lattice time of its first number |
| ROUGH | |noise|, summed up over the octaves |
| SPHERE, BOX, CAPSULE, PLANE | signed distance of a, < 0 inside |
| REMAPPED | a brought from one range to another, straight or smoothly |
| GRID | voxels of a sparse grid around a, trilinear; what it does not hold counts with a value of its own, or is left out |
| CUBES | values on cubes of a lattice around a, by the quadratic spline; NaN where none is near |
| BETWEEN | a share of the way from a to b; where one of them is NaN the other |
| FILLED | a, and b where a is NaN |
| ADD to MIX, COSINE | arithmetic |
| ATTRIBUTE | a, which is its own register: whoever runs the program puts there what the particle has |
"""

CONSTANT = 0
PLACE = 1
MOVED = 2
NOISE = 3
ROUGH = 4
CURL = 5
SPHERE = 6
BOX = 7
CAPSULE = 8
PLANE = 9
REMAPPED = 10
ADD = 11
SUBTRACT = 12
MULTIPLY = 13
DIVIDE = 14
MINIMUM = 15
MAXIMUM = 16
POWER = 17
ABSOLUTE = 18
LENGTH = 19
NORMALIZE = 20
DOT = 21
CROSS = 22
MIX = 23
GRID = 24
ATTRIBUTE = 25
CUBES = 26
BETWEEN = 27
FILLED = 28
COSINE = 29
