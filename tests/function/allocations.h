/// How often this thread has asked operator new for memory, which is replaced in the program of these tests.
#pragma once

namespace gradus {

int allocations_so_far();

}  // namespace gradus
