/// Messages of the library beside its results, and where they go: notices, and the progress of trainings.
#pragma once
#include <functional>
#include <string_view>

namespace gradus {

/// Receives messages, each with the ends of its lines, from any thread. An exception that it throws is not passed on:
/// it is written to standard error after the message.
using MessageSink = std::function<void(std::string_view message)>;

/// Sends notices, which point out what a user may have overlooked, to `sink` from now on; to standard error if it is
/// empty. Returns the sink before.
MessageSink set_notice_sink(MessageSink sink);
/// Sends the progress of fit to `sink` from now on, one whole line an epoch; to standard error if it is empty, where a
/// terminal sees its line change. A running training keeps the form that it began with. Returns the sink before.
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
