#!/bin/sh
# Makes the archive of kernels that object files are linked with: archive_kernels.sh OBJCOPY NM AR ARCHIVE OBJECT...
# What belongs to C++ alone is left out: initializers of statics, tables of exceptions. Variables that C++ has once in a
# process (STB_GNU_UNIQUE) become weak: they could not be made local otherwise. So do whole tables of tiles, since an
# object has a table of its own.
set -eu
objcopy=$1 nm=$2 ar=$3 archive=$4
shift 4
folder=$archive.parts
rm -rf "$folder" "$archive"
mkdir -p "$folder"
number=0
for object in "$@"; do
  number=$((number + 1))
  { echo none; "$nm" "$object" | awk '$2 == "u" || $3 ~ /^gradus_tiles_[a-z0-9]*$/ { print $3 }'; } > "$folder/unique"  # an empty list is an error
  "$objcopy" --strip-debug --weaken-symbols="$folder/unique" --remove-section=.comment \
    --remove-section='.init_array*' --remove-section='.rela.init_array*' \
    --remove-section=.eh_frame --remove-section=.rela.eh_frame --remove-section='.gcc_except_table*' \
    --remove-section='.rela.gcc_except_table*' "$object" "$folder/$number.o"
done
"$ar" rcsD "$archive" "$folder"/*.o
rm -rf "$folder"
