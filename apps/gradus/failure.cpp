/// What went wrong, in one line, and the exit status for it.
#include <iostream>
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
  } catch (const std::exception& error) {
    std::cerr << "gradus: " << error.what() << '\n';
    return failed;
  }
}

}  // namespace gradus::command
