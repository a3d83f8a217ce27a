/// Messages of the library beside its results, and where they go: notices, and the progress of trainings.
#pragma once
#include <functional>
#include <string_view>

namespace gradus {

/// Receives messages, each with the ends of its lines, from any thread. An exception that it throws goes no further: it
/// is written to standard error behind the message.
using MessageSink = std::function<void(std::string_view message)>;

/// Notices, which tell of what a user may have overlooked, go to `sink` from now on; to standard error if it is empty.
/// Gives the sink before.
MessageSink set_notice_sink(MessageSink sink);
/// The progress of fit goes to `sink` from now on, by whole lines, an epoch each; to standard error if it
/// is empty, where a terminal sees its line change. A training that runs keeps the form that it began with. Gives the
/// sink before.
MessageSink set_progress_sink(MessageSink sink);

namespace detail::inline rooms {

/// Gives a message to the sink of notices. Numbers go through text() first, so the caller's locale does not matter.
void notice(std::string_view written);
/// Gives a message to the sink of progress.
void show_progress(std::string_view written);
/// True if progress goes to standard error.
bool shows_progress_on_stderr();

}  // namespace detail::inline rooms

}  // namespace gradus
