/// Words of a process to its launcher, `gradus launch`, which otherwise sees only its output and its end. Each is one
/// datagram to the socket that GRADUS_LAUNCHER names, so it also arrives from processes that a started program starts.
/// Nothing waits for it, and a lost one changes nothing else.
#pragma once
#include <string_view>

namespace gradus {

enum class LauncherNote : char {
  trains = 't',     // it has an optimizer
  asks_rank = 'r',  // it has asked which of the ranks it is
};

/// Sends the note, once for each kind of note. It does nothing if no launcher has started this process.
void tell_launcher(LauncherNote note) noexcept;

/// Sends these bytes, which are longer than a note.
void send_to_launcher(std::string_view bytes) noexcept;

}  // namespace gradus
