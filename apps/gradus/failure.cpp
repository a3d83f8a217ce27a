/// The error in one line, and the exit status for it.
#include <iostream>
#include <new>
#include <system_error>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"

namespace gradus::command {

int report_failure() {
  try {
    throw;
  } catch (const ConfigError& error) {
    std::cerr << "gradus: " << error.what() << '\n';
    return usage;
  } catch (const Diverged& error) {
    std::cerr << "gradus: " << error.what() << '\n';
    return diverged;
  } catch (const DataError& error) {
    std::cerr << "gradus: " << error.what() << '\n';
    return bad_data;
  } catch (const OutOfRange& error) {  // of data: a label outside the classes
    std::cerr << "gradus: " << error.what() << '\n';
    return bad_data;
  } catch (const std::bad_alloc&) {
    std::cerr << "gradus: out of memory; allow the process more (ulimit -v, or that of the machine or container)\n";
    return failed;
  } catch (const std::system_error& error) {
    const bool is_short =
        error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory;
    if (is_short) std::cerr << "gradus: the system starts no further thread, or has no memory: ";
    else std::cerr << "gradus: ";
    std::cerr << error.what() << (is_short ? "; allow the process more (ulimit -u, ulimit -v)\n" : "\n");
    return failed;
  } catch (const std::exception& error) {
    std::cerr << "gradus: " << error.what() << '\n';
    return failed;
  }
}

}  // namespace gradus::command
