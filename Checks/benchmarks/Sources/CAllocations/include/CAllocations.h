#include <stdint.h>

// The number of memory blocks that were allocated since the process began.
uint64_t allocations_made(void);
