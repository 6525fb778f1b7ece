# Writes the data of packages that tests/benchmarks/data_of_r.py names as CSV files to a folder.
folder <- commandArgs(trailingOnly = TRUE)[1]
lines <- readLines("tests/benchmarks/data_of_r.py")
files <- regmatches(lines, regexpr('\\("[A-Za-z]+-[A-Za-z0-9]+"', lines))
for (file in unique(gsub('[("]', "", files))) {
  names <- strsplit(file, "-")[[1]]
  found <- new.env()
  data(list = names[2], package = names[1], envir = found)
  table <- as.data.frame(get(names[2], envir = found))
  write.csv(table, file.path(folder, paste0(file, ".csv")), row.names = FALSE)
}
