/// The launcher's socket for the words of its ranks (gradus/base/launcher_note.h), without a file.
#pragma once
#include <set>
#include <string>
#include <vector>
#include "gradus/distribute/cluster/launcher_reports.h"

namespace gradus::command {

class ReportSocket {
 public:
  /// If the socket cannot be made, its name is empty and it receives nothing.
  ReportSocket();
  ~ReportSocket();
  ReportSocket(const ReportSocket&) = delete;

  /// The name that ranks receive as GRADUS_LAUNCHER.
  const std::string& name() const { return name_; }
  /// For poll; -1 if there is none.
  int descriptor() const { return socket_; }
  /// Reports that have arrived; notes that have arrived are kept. Words of other users' processes are ignored.
  std::vector<RankReport> read();
  /// True if processes have trained, and none has asked which rank it is.
  bool is_of_strangers() const;
  /// Drops all that has arrived so far.
  void forget();

 private:
  std::string name_;
  int socket_ = -1;
  std::set<char> notes_;
};

}  // namespace gradus::command
