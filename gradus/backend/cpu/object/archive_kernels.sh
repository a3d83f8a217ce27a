#!/bin/sh
# Makes the archive of kernels that object files are linked with: archive_kernels.sh OBJCOPY AR ARCHIVE OBJECT...
# What belongs to C++ alone is left out: initializers of statics, tables of exceptions.
set -eu
objcopy=$1 ar=$2 archive=$3
shift 3
folder=$archive.parts
rm -rf "$folder" "$archive"
mkdir -p "$folder"
number=0
for object in "$@"; do
  number=$((number + 1))
  "$objcopy" --strip-debug --remove-section=.comment --remove-section='.init_array*' --remove-section='.rela.init_array*' \
    --remove-section=.eh_frame --remove-section=.rela.eh_frame --remove-section='.gcc_except_table*' \
    --remove-section='.rela.gcc_except_table*' "$object" "$folder/$number.o"
done
"$ar" rcsD "$archive" "$folder"/*.o
rm -rf "$folder"
