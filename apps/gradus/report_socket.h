/// The launcher's socket for reports of its ranks (gradus/distribute/launcher_reports.h), without a file.
#pragma once
#include <string>
#include <vector>
#include "gradus/distribute/launcher_reports.h"

namespace gradus::command {

class ReportSocket {
 public:
  /// If the socket cannot be made, its name is empty and it receives nothing.
  ReportSocket();
  ~ReportSocket();
  ReportSocket(const ReportSocket&) = delete;

  /// The name that ranks receive as Cluster::launcher.
  const std::string& name() const { return name_; }
  /// For poll; -1 if there is none.
  int descriptor() const { return socket_; }
  /// Reports that have arrived. Reports of other users' processes are ignored.
  std::vector<RankReport> read() const;

 private:
  std::string name_;
  int socket_ = -1;
};

}  // namespace gradus::command
