#include <stdint.h>

// How many blocks of memory were asked for since the process began.
uint64_t allocations_made(void);
