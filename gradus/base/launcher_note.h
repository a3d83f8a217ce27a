/// Notes of a process to its launcher, `gradus launch`, which otherwise sees only its output and its end.
#pragma once

namespace gradus {

enum class LauncherNote : char {
  trains = 't',     // it has an optimizer
  asks_rank = 'r',  // it has asked which of the ranks it is
};

/// Writes the note into the file that GRADUS_LAUNCHER names, once for each note. It does nothing without that variable;
/// a note that cannot be written is lost.
void tell_launcher(LauncherNote note) noexcept;

}  // namespace gradus
