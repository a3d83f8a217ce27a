/// What ends the command where no exception can: LLVM without memory, an exception that nobody can catch, a stack that
/// cannot grow. It says so on stderr and exits with status 1, as failures do. What is being written then is not there,
/// since files appear whole or not at all. These are handlers of the process, so that the library installs none.
#pragma once

namespace gradus::command {

void install_last_words();

}  // namespace gradus::command
