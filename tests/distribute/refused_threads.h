/// Threads that cannot be started, as where a container's limit of processes is reached. A limit of the system does not
/// hold for root; this one holds for the whole process, whichever library asks.
#pragma once

namespace gradus {

/// True where pthread_create can be refused: not beside a sanitizer, which has one of its own.
bool can_refuse_threads();
/// From now on so many threads can still be started.
void allow_threads(int count);

}  // namespace gradus
