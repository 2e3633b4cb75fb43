// Parts of an array, and every element of them or each step-th alone: a thread block for each piece.
// A piece is its first element in the array, its place among the elements of all pieces, and how many elements it has.

extern "C" __global__ void pack_parts(const int* array, int* packed, const long long* pieces, int step) {
    const long long* piece = pieces + 3 * blockIdx.x;
    for (int i = threadIdx.x; i < piece[2]; i += blockDim.x) packed[piece[1] + i] = array[piece[0] + (long long)i * step];
}

extern "C" __global__ void unpack_parts(const int* packed, int* array, const long long* pieces, int step) {
    const long long* piece = pieces + 3 * blockIdx.x;
    for (int i = threadIdx.x; i < piece[2]; i += blockDim.x) array[piece[0] + (long long)i * step] = packed[piece[1] + i];
}
