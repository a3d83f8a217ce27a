/// Threads that cannot be started, as under a container's limit of processes. Root ignores a limit of the system; this
/// limit holds for the whole process and all of its libraries.
#pragma once

namespace gradus {

/// True if pthread_create can be refused: not with a sanitizer, which has its own.
bool can_refuse_threads();
/// From now on, only `count` more threads can be started.
void allow_threads(int count);

}  // namespace gradus
