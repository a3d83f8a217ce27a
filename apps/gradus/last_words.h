/// Handlers that end the command where no exception can: LLVM without memory, an uncaught exception, a stack that
/// cannot grow. They say so on stderr and exit with status 1, as failures do. A file being written then does not exist,
/// since files appear whole or not at all. These are handlers of the process, so that the library installs none.
#pragma once

namespace gradus::command {

void install_last_words();

}  // namespace gradus::command
