/// How many threads compute.
#pragma once

namespace gradus {

/// Changes no result, only its speed. InvalidArgument unless 1 to 1024, or from inside a computation. The first value
/// is that of the environment variable GRADUS_NUM_THREADS, else the number of cores of this process.
void set_num_threads(int n);
int num_threads();

}  // namespace gradus
